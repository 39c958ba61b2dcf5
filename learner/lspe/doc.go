// Package lspe is the critic: least-squares policy evaluation, LSPE(0).
//
//  1. [Steps] are step-size schedules as data.
//  2. matrix.go keeps the inverse of a running average of rank-one matrices by
//     Sherman and Morrison, measures whether it can be trusted, and falls back
//     to Tikhonov.
//  3. [Critic] is LSPE(0) on these, one transition at a time, for one problem
//     with up to thousands of features.
//  4. [Bank] is LSPE(0) for up to millions of problems with a few features each,
//     a batch of transitions at a time. On single transitions both are the same.
package lspe
