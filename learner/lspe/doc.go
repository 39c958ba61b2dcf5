// Package lspe is the critic: least-squares policy evaluation, LSPE(0).
//
//  1. [Steps] are step-size schedules as data.
//  2. [Inverse] keeps the inverse of a running average of rank-one matrices by
//     Sherman and Morrison, measures whether it can be trusted, and falls back
//     to Tikhonov.
//  3. [Critic] is LSPE(0) on these.
package lspe
