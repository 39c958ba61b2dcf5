// Package calendar selects the sources with the highest index within the
// budget, as baselines.Selector does, without touching every source at every
// epoch.
//
// Where states are not observed, the index of a source is a nondecreasing
// function of its age alone, the number of epochs since its last crawl. Then
// the epoch in which it can first reach a given level is known when it is
// crawled, and until that epoch the source need not be looked at.
//
//  1. A [Ranking] says what the index is at an age, and the age at which it
//     first reaches a level.
//  2. Sources at or above the floor, a level somewhat below the index of the
//     last source that is crawled, are candidates: they lie in a pool and are
//     compared at every epoch. The others sleep in timing wheels, rings with a
//     bucket for each epoch: in the near wheel until they reach the floor, in
//     the far wheel until they reach a lower level, the horizon.
//  3. [Calendar.Select] wakes the sources of one bucket per wheel, compares the
//     candidates, and takes the best. If they do not use up the budget, the
//     floor is lowered: the near wheel, and if need be the far one, is emptied
//     and its best sources become candidates. If too many candidates are left
//     over, the floor is raised and the surplus sleeps again.
//  4. Where costs differ, each class of like costs has a floor, a pool and
//     wheels of its own, and a class of which nothing fits any more is left out.
//
// The levels decide how much work is done and never what is chosen: a source is
// chosen only if its index is at or above the floor, and then it is compared
// with every source of which that is true.
package calendar
