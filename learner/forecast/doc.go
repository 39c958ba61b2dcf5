// Package forecast holds the learners that know nothing beforehand but costs and
// budget.
//
//  1. [estimate.Estimates] tells from what crawls bring back what the sources
//     publish.
//  2. [Lift] turns that into the view and the parameters that a policy of the
//     level "model" works with, and so lifts any such policy to "online".
//  3. [Learner] is the one that is deployed: Whittle's index of what is foretold,
//     and revisits. With [CertaintySettings] it is certainty-equivalent Whittle.
//  4. [Actor] is the actor-critic with a price, lifted: the adaptive scheme of
//     TCNS, section X.
package forecast
