// Package env is the model: what a source of ephemeral content is, how content
// arrives, what a crawl brings back, and what a policy may know.
//
// The package is read in the order in which data flow:
//
//  1. A [Source] has an arrival rate, a decay rate, a mean initial interest,
//     a window and a crawl cost. From these follow the epoch factor α, the
//     gain u and the ceiling u*.
//  2. An [Instance] is a list of sources and a budget: what the crawls of one
//     epoch may cost together.
//  3. A [World] is one way in which content arrives: [Mean] follows the
//     papers' mean dynamics, [Poisson] draws single items, [Replay] plays a
//     recording.
//  4. At each epoch a [Policy] sees its level of knowledge, one of the types
//     [Online], [Model] and [Observed], and picks the sources to crawl; a
//     [Learner] is then told what the crawls brought back. What a level does
//     not give, its type does not hold.
//  5. An [Agent] is a policy of any level, as the loop of a run holds it.
//
// Symbols follow Avrachenkov and Borkar, "Whittle index policy for crawling
// ephemeral content", IEEE TCNS 5(1), 2018 ("TCNS") and "A learning algorithm
// for the Whittle index policy for scheduling web crawlers", Allerton 2019
// ("Allerton"). Time is counted in epochs; interest is in the unit in which an
// item's initial interest is given.
package env
