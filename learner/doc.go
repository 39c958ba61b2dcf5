// Package learner holds the learners, as state machines without files or
// clocks. With very many sources, [Priced] shares a pass among goroutines that
// end with it.
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
//  6. [Priced] is the actor-critic with a price for the budget, and small
//     LSPE(0) critics of one source each; [PricedOnline] and [PricedObserved]
//     are the same at other levels of knowledge.
package learner
