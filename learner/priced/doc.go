// Package priced is the actor-critic with a price for the budget and small
// LSPE(0) critics of one source each: [Learner] where the mean state is known,
// [Observed] where the true state is seen, and [Online] where nothing is known
// but what crawls bring back. With very many sources, [Learner] shares a pass
// among goroutines that end with it.
package priced
