// Package paper is the actor-critic of Avrachenkov and Borkar, "A learning
// algorithm for the Whittle index policy for scheduling web crawlers", Allerton
// 2019 ("Allerton"), as printed, and what repairs it.
//
//  1. threshold.go: Tᵢ, projected on [u, u*], and the coordinate in which a state
//     is compared with it.
//  2. actor.go: probabilities of a crawl, and which sources are crawled.
//  3. ascent.go: how q follows the gradient, the printed way and two others.
//  4. price.go: the price of the budget.
//  5. learner.go puts them together with the critic, critic.Critic.
//
// [Settings] choose among the printed parts and the repaired ones. [Settings.Readings]
// are the steps from the one learner to the other.
package paper
