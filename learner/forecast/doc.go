// Package forecast holds the learner that is deployed where items are seen. It knows
// nothing beforehand but costs and budget.
//
//  1. [estimate.Estimates] tells from what crawls bring back what the sources
//     publish.
//  2. [Learner] foretells what waits and crawls by Whittle's index of it, and
//     sources that are overdue (ranking.go). With [CertaintySettings] it is
//     certainty-equivalent Whittle.
package forecast
