// Package baselines holds what a learned policy is compared with.
//
//  1. A [Selector] crawls by decreasing index until the budget is used. Every
//     index policy, and the learners, share it.
//  2. Index policies differ in their index only: exact Whittle ([NewWhittle]),
//     Lagrangian ([NewLagrangian]), greedy by age ([NewGreedy]), myopic
//     ([NewMyopic]), round robin ([NewRoundRobin]) and the best sources only
//     ([NewBestSource]).
//  3. With the state observed, the index also knows what may still arrive: a
//     gainLaw is what a source gains in an epoch, [NewStochasticWhittle] the
//     policy of the true index, [NewLearnedStochasticWhittle] of the learned one.
//  4. A static schedule fixes the frequencies beforehand: [NewEvenSchedule].
//  5. Bounds say what no policy can exceed: [index.Bound] and [index.Relax], with
//     [NewRelaxedControl] as the control that keeps the budget on average, and
//     the exact optimum of small instances, [SolveOptimum].
//  6. What crawlers do today ([NewEntryFrequency], [NewNutch],
//     [NewStormCrawler]) knows its own crawls only.
//  7. So do the learners: Q-learning of the index ([NewQWhittle]) and learned
//     thresholds ([NewSalmut]).
package baselines
