// Package baselines holds what a learned policy is compared with.
//
//  1. A [Selector] crawls by decreasing index until the budget is used. Every
//     index policy, and the learners, share it.
//  2. Index policies differ in their index only: exact Whittle ([NewWhittle]),
//     greedy by age ([NewGreedy]), myopic ([NewMyopic]), round robin
//     ([NewRoundRobin]) and the best sources only ([NewBestSource]).
//  3. Bounds say what no policy can exceed.
package baselines
