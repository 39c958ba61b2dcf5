// Package index holds the formulas of a single source, each once: what every
// policy, learner and table of this project uses.
//
//  1. A [Curve] is what one crawl earns by the age of the source.
//  2. Whittle's index by state ([Whittle], [WhittleLiteral]) and by age
//     ([WhittleAtAge], [AtAge]), and its inverse, by state ([Inverse]) and by age
//     ([Curve.Age]).
//  3. lambert is the branch W₋₁ in a form that keeps its digits. With it, the
//     relaxed problem in real time is solved: [RelaxedThreshold], [RelaxedAge].
//  4. [Lagrange] is the solution of one source's problem at a price, and gives
//     the Lagrangian index.
//  5. [Relax] is the relaxed problem of all sources in whole epochs, and the
//     upper bound on every policy, [Bound].
//
// Indices and prices are in interest per budget unit, charges (a price times
// the cost of a crawl) in interest.
package index
