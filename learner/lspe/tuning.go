package lspe

// What was chosen by trial, beyond [Settings]: on instances with seeds 1 to 10 and 5001 to
// 5110, and on the first halves of recordings. They are variables for the test that halves and
// doubles each and prints what that loses; nothing else changes them. None has a scale
// of interest or a number of sources in it.
var (
	// Critic.
	pseudoWeight   = 3.   // cycles: the least weight of all pseudo-cycles, which hold the polynomials
	priorItems     = .5   // items: a harvest of so many counts as much as the prior
	firstItems     = 100. // items: so many count as much as the prior at first, where harvests have less than one
	alikeSlopes    = .01  // variance of slopes: where sources differ by less, the prior counts more
	slopeSpread    = .05  // variance of the slopes of sources before it is measured,
	slopeInfo      = 30.  // and one over the square of its standard error
	pooledRounds   = 2.   // rounds: where crawls are free, the prior counts less in longer waits
	levelSpread    = 1.   // variance of the levels of sources before it is measured,
	levelRounds    = 2.   // and for how many rounds of all sources it counts
	levelPrior     = .5   // harvests of mean size: how much the pooled curve counts in the level of a source
	variationPrior = 5.   // cycles: how much the variation of all harvests counts in that of a source
	// θ: a longer cycle is cut, since what comes that late says little of θ, and its powers
	// outweigh the others.
	longestCycle = 2.
	forgetMost   = .5 // share: the most that a cycle counts where the actor has left the others behind

	// Pooled curve.
	poolRidge = 16.    // items: for how many the β counts with which the curve begins
	poolStart = 1. / 3 // of each feature: that β; they add up to 1, so that young harvests grow as their age
	absurd    = 1e9    // standard deviations: a harvest that surprises more is left out

	// Actor.
	priceFloor    = .1   // share of the mean harvest: the least price by which errors of W are measured
	evidence      = 2.   // standard errors: by how much W is below 0 before a wait grows at a price of 0
	farEvidence   = 1.   // standard errors: by how much W is below the price before a wait grows beyond
	farRounds     = 4.   // rounds
	maxThetaStep  = 2.   // factor: how far θ moves between two crawls; beyond, only another crawl tells
	wakeStep      = .5   // of a(k): the step where a source wakes without a crawl
	mostRounds    = 50.  // rounds: the greatest θ, or
	mostShare     = .25  // share of the epochs since the world changed, if that is more
	mostSlope     = 16.  // of κ per epoch of θ, which sets how often θ from 1 to 1½ brings a crawl at age 2,
	freeSlope     = 10.  // and where crawls are free, so that one in 60 has age 2 at the least
	signalScale   = .3   // prices per standard deviation of a harvest that count a cycle in full in κ
	leastQuantile = .001 // chance: where the logistic noise is cut off at both ends

	// Jumps.
	surprise    = 5.   // standard deviations: the most that one harvest counts
	alarm       = 8.   // standard deviations: the sum at which a source has changed
	modelError  = .15  // share of a harvest by which the expectation may be wrong without surprise
	judged      = 5.   // cycles before which nothing is expected
	dispersions = 400. // cycles over which the dispersion is averaged
	rarest      = 10.  // standard deviations: the most that a harvest counts in it
	worldShare  = .1   // share of the sources that jump where the world has changed, within
	worldMemory = 4.   // crawls per source; and the cycles that each source counts as having then

	// Schedule and price.
	sleepRounds    = 3.    // rounds: for how long a source sleeps at most
	capacityMemory = 100.  // full epochs over which M̂ is averaged
	harvestMemory  = 1000. // crawls over which h̄ is averaged
	failedMemory   = 50.   // cycles over which failed crawls are averaged
)
