// Package allerton is the actor-critic of Avrachenkov and Borkar, "A learning
// algorithm for the Whittle index policy for scheduling web crawlers", Allerton
// 2019 ("Allerton"): [Thresholds] in logit form are the actor, lspe.Critic is
// the critic, and [Learner] puts them together.
package allerton
