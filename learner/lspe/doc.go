// Package lspe is the actor-critic that learns from what it sees, called lspe on
// the command line. [Learner] is given costs and budget only and sees of each crawl
// its age and harvest. Package observed is for worlds that show the true state.
//
// An epoch of [Learner]:
//
//  1. schedule.go: sources sleep in a ring until they are nearly due. Those that
//     wake wait, and the most overdue are crawled within the budget.
//  2. source.go: a crawl closes a cycle; its age and harvest enter averages of
//     powers of the age, and its features the running inverse.
//  3. critic.go: LSPE(0) on polynomials of the age, for crawling and for waiting,
//     harvest and cost as two rewards.
//  4. actor.go: the policy gradient, the derivative of the average reward, moves the
//     threshold of the source; the price at which it is 0 is the learned index. The
//     logit's noise is drawn for the next cycle.
//  5. learner.go: the price moves by what all thresholds plan to spend.
//
// Time scales: a cycle's weight in the critic is b(k), k the source's cycles, the
// actor's step a(k) = o(b(k)), the price's d(m) = o(a(m)), m rounds.
//
// Before that, coldstart.go crawls each source once and takes thresholds and price
// from the curve in pooled.go, which all sources have in common; jump.go begins
// sources anew that have become others. policy.go is what was learned, settings.go
// the settings, state.go the state as data.
package lspe
