// Package observed is the actor-critic lspe where the true state of every
// source is seen (TCNS, section VIII) and nothing else is known: neither rates
// nor decays nor the law of what arrives.
//
// Given the price λ of a budget unit each source is a problem of optimal
// stopping: crawl now, or wait for what the noise brings. A learner follows it
// on three time scales, d(n) = o(a(n)) and a(n) = o(b(n)):
//
//  1. critic.go learns by least squares how the state drifts, and by LSPE(0), on
//     polynomials of the state, by how much it grows until the next crawl and how
//     long that takes. The index follows from both.
//  2. learner.go has the logit thresholds, which the actor moves to where the
//     index is the price; the choice within the budget; and the price, on the
//     slowest scale.
//  3. settings.go and state.go hold settings and the whole state as data.
package observed
