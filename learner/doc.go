// Package learner is the list of the learners, and how one is saved and loaded.
// The learners are state machines without files or clocks:
//
//  1. lspe is the critic, LSPE(0), with its running inverse and step sizes.
//  2. allerton is the published actor-critic.
//  3. priced is the actor-critic with a price for the budget.
//  4. estimate is what is estimated from crawled items.
//
// What train saves in a directory is run by another program with [Load].
package learner
