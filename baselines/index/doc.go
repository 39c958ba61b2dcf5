// Package index holds the formulas of a single source, each once: what every
// policy, learner and table of this project uses.
//
//  1. A [Curve] is what one crawl earns by the age of the source, for any law of
//     interest, with Whittle's index at an age and its inverse.
//  2. For the exponential law the index has closed forms, at any state
//     ([Whittle], [WhittleLiteral], [Inverse]) and at an age.
//  3. [Lagrange] is the solution of one source's problem at a price, and gives
//     the Lagrangian index.
//  4. [Relax] is the relaxed problem of all sources in whole epochs, and the
//     upper bound on every policy, [Bound].
//
// All but the states are of the harvest curve, [env.Source.Harvest]. What holds
// under the papers' mean dynamics with windows is that of
// [env.Instance.MeanDynamics].
//
// Indices and prices are in interest per budget unit, charges (a price times
// the cost of a crawl) in interest.
package index
