// Package learner holds the learners, as state machines without files, clocks
// or goroutines.
//
//  1. [Steps] are step-size schedules as data.
//  2. [Inverse] keeps the inverse of a running average of rank-one matrices by
//     Sherman and Morrison, measures whether it can be trusted, and falls back
//     to Tikhonov.
//  3. [LSPE] is the critic: least-squares policy evaluation, LSPE(0).
//  4. [Thresholds] are the actor's policy: thresholds in logit form.
//  5. [Paper] is the actor-critic of Avrachenkov and Borkar, "A learning
//     algorithm for the Whittle index policy for scheduling web crawlers",
//     Allerton 2019 ("Allerton"), on these.
package learner
