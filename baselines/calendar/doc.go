// Package calendar selects the sources with the highest index within the
// budget, as baselines.Selector does, without touching every source at every
// epoch.
//
// Where states are not observed, the index of a source is a nondecreasing
// function of its age alone, the number of epochs since its last crawl. Then
// the epoch in which it can first reach a given level is known when it is
// crawled, and until that epoch the source need not be looked at.
//
//  1. An [Index] says what the index is at an age, and the age at which it
//     first reaches a level.
//  2. A [Calendar] keeps a ladder of levels. Sources at or above the highest
//     level, the floor, are candidates: they lie in a pool and are compared at
//     every epoch. Every other source sleeps in a timing wheel, in the bucket
//     of the epoch in which it reaches the next level.
//  3. [Calendar.Next] wakes the sources of one bucket per wheel, compares the
//     candidates, and takes the best. If they do not use up the budget, the
//     floor is lowered: the sources just below it are taken out of their wheel
//     until enough of them are candidates. If too many candidates are left
//     over, the floor is raised and the surplus sleeps again.
//  4. A [Policy] puts a calendar behind the contract of env.Policy.
//
// The levels decide how much work is done and never what is chosen: a source is
// chosen only if its index is at or above the floor, and then it is compared
// with every source of which that is true.
package calendar
