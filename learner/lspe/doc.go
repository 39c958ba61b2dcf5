// Package lspe is the actor-critic with a price for the budget where the mean
// state is known, called lspe on the command line; package observed is that
// where the true state is seen.
//
//  1. settings.go has the settings and what they are at an epoch.
//  2. critic.go is the critic, LSPE(0) for each source, and what crawling now is
//     worth by it.
//  3. actor.go is the actor, a threshold for each source.
//  4. common.go mixes both into keys, chooses within the budget, and holds the
//     price.
//  5. learner.go puts these together.
//
// State returns the whole state of a learner between an Update and the next
// Select as a struct with named fields for encoding/json, and a learner of the
// same instance and settings that takes it up by SetState goes on bit for bit.
package lspe
