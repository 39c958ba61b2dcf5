package estimate

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"ephemera/env"
)

// Pages are the rates at which pages change, as one bit per crawl tells of them: whether a
// page has changed since the crawl before. A page changes as a Poisson process, so that after
// s epochs it has not with the probability
//
//	P(unchanged) = e^(−Δs)
//
// Where pings say that a page may have changed, Δ is the rate of the changes without a ping, u
// below, and each of n pings tells of a change with the probability p = 1 − e^(−q):
//
//	P(unchanged) = e^(−us − qn)
//
// ln u and ln q of a page are the mode, given its crawls and a normal law of each over all
// pages, which is estimated along with them (empirical Bayes). The mode, and no mean or upper
// end: the index of a page that is overdue goes as 1/Δ, so that a rate which is thought too
// great starves it, and nothing is seen that would mend it.
type Pages struct {
	PageState
	horizon float64 // epochs
}

// PageState is all that was learned, as data.
type PageState struct {
	Crawls   int    `json:"crawls"`  // that were taken in
	Fitted   int    `json:"fitted"`  // epoch at which the laws were brought up to date
	RateLaw  normal `json:"rate"`    // of ln u over the pages
	TrustLaw normal `json:"trust"`   // of ln q
	RatioLaw normal `json:"ratio"`   // of ln u − ln ν, with ν pings per epoch
	Pages    []page `json:"sources"` //
}

// page is what is known of one page. Cycles are the times from one crawl to the next.
type page struct {
	Rate, RateVar   float64 // mode of ln u and its variance, given all pages
	Trust, TrustVar float64 // of ln q

	Crawls int     `json:",omitempty"`
	Same   float64 `json:",omitempty"` // U, epochs of the cycles in which it did not change
	Quiet  float64 `json:",omitempty"` // pings in them
	// Cycles in which it changed, by their length and pings.
	Changed []spans `json:",omitempty"`
	// Pings since the last crawl.
	Pings int `json:",omitempty"`
}

// spans are the cycles of a length from 2^Log to twice that, in epochs, and of as many pings, up to
// mostPings. In place of each of them stands their mean.
type spans struct {
	Log, Class    int
	N             float64
	Epochs, Pings float64 // Σs and Σn
}

const (
	mostPings   = 3   // cycles with more pings than that count as having so many
	leastUnseen = .02 // of the changes have no ping, at least
	lawEpochs   = 25  // from one estimate of the laws to the next
	// Cycles of a page that are remembered, at least, in which it changes once in the mean.
	rememberedChanges = 300
	forgotten         = 1e-6 // cycles

	// unknownVar is the variance of ln u over pages of which nothing is known: a factor of ten.
	unknownVar = math.Ln10 * math.Ln10
)

// NewPages begins without any knowledge of so many pages. The horizon is that of [New].
func NewPages(n int, horizon float64) *Pages {
	anyRate := normal{0, unknownVar}      // u is 1 per epoch, give or take a factor of ten
	half := normal{math.Log(math.Ln2), 1} // p is ½, give or take a third
	e := &Pages{PageState{RateLaw: anyRate, TrustLaw: half, RatioLaw: anyRate}, cmp.Or(horizon, math.Inf(1))}
	for i := range n {
		e.Open(i)
	}
	return e
}

// Expect says in how many epochs all pages can be crawled once. As long as no cycle of any page
// is known, pages are thought to change once in that time: the budget is of some use for most
// of them. A rate that is too great by far would keep all waiting but the first few that are
// found to change less.
func (e *Pages) Expect(round float64) {
	mean := -math.Log(max(1, round))
	if e.RateLaw.Var != unknownVar || math.Abs(mean-e.RateLaw.Mean) < math.Ln2 {
		return
	}
	e.RateLaw.Mean = mean
	for i := range e.Pages {
		e.step(&e.Pages[i])
	}
}

// Open begins page i, the first beyond all others or one that is forgotten.
func (e *Pages) Open(i int) {
	p := page{Rate: e.RateLaw.Mean, RateVar: e.RateLaw.Var, Trust: e.TrustLaw.Mean, TrustVar: e.TrustLaw.Var}
	if i == len(e.Pages) {
		e.Pages = append(e.Pages, p)
	}
	e.Pages[i] = p
}

// Crawled reports whether any crawl of page i was taken in.
func (e *Pages) Crawled(i int) bool { return e.Pages[i].Crawls > 0 }

// Ping takes in that page i may have changed.
func (e *Pages) Ping(i int) { e.Pages[i].Pings++ }

// ForgetPings takes in that page i is crawled by a policy that learns no more from it.
func (e *Pages) ForgetPings(i int) { e.Pages[i].Pings = 0 }

// Add takes in a crawl. The first one of a page, where none was before with which to compare,
// has the age 0.
func (e *Pages) Add(c env.Crawled) {
	p := &e.Pages[c.Source]
	s, n := float64(c.Age), float64(p.Pings)
	e.Crawls++
	p.Crawls++
	p.Pings = 0
	if c.Age <= 0 {
		return
	}
	p.forget(math.Exp(-s / max(e.horizon, rememberedChanges*math.Exp(-p.Rate))))
	if c.Changed {
		p.spansOf(c.Age, int(n)).add(s, n)
	} else {
		p.Same += s
		p.Quiet += n
	}
	e.step(p)
}

// forget has what was seen lose weight.
func (p *page) forget(keep float64) {
	if keep == 1 {
		return
	}
	p.Same *= keep
	p.Quiet *= keep
	for k := range p.Changed {
		c := &p.Changed[k]
		c.N, c.Epochs, c.Pings = c.N*keep, c.Epochs*keep, c.Pings*keep
	}
	p.Changed = slices.DeleteFunc(p.Changed, func(c spans) bool { return c.N < forgotten })
}

// spansOf returns those of a length and so many pings.
func (p *page) spansOf(age, pings int) *spans {
	log, class := bits.Len(uint(age))-1, min(pings, mostPings)
	k := slices.IndexFunc(p.Changed, func(c spans) bool { return c.Log == log && c.Class == class })
	if k < 0 {
		k = len(p.Changed)
		p.Changed = append(p.Changed, spans{Log: log, Class: class})
	}
	return &p.Changed[k]
}

func (c *spans) add(s, n float64) {
	c.N++
	c.Epochs += s
	c.Pings += n
}

// Rescale has what is known of page i, in epochs that last as long as k of these, be in these.
func (e *Pages) Rescale(i int, k float64) {
	p := &e.Pages[i]
	p.Rate -= math.Log(k)
	p.Same *= k
	changed := p.Changed
	p.Changed = nil
	for _, c := range changed {
		to := p.spansOf(max(1, int(c.Epochs/c.N*k)), c.Class)
		to.N, to.Epochs, to.Pings = to.N+c.N, to.Epochs+c.Epochs*k, to.Pings+c.Pings
	}
}

// pinged reports whether it had any ping before its last crawl.
func (p *page) pinged() bool {
	return p.Quiet > 0 || slices.ContainsFunc(p.Changed, func(c spans) bool { return c.Pings > 0 })
}

// step finds the modes of ln u and ln q in turn: with z = us + qn of each cycle that ended with
// a change, the sums U of epochs and V of pings of the others, and the law N(μ, τ²) of each
//
//	Σ us/(e^z − 1) − uU = (ln u − μ)/τ²,   Σ qn/(e^z − 1) − qV = (ln q − μ)/τ²
func (e *Pages) step(p *page) {
	pinged, rounds := p.pinged(), 1
	if pinged {
		rounds = 3
	}
	for range rounds {
		q := 0.
		if pinged {
			q = math.Exp(p.Trust)
		}
		climb(&p.Rate, &p.RateVar, e.rateLaw(p), p.Same, func(u float64, cycle func(n, own, z float64)) {
			for _, c := range p.Changed {
				s, n := c.Epochs/c.N, c.Pings/c.N
				cycle(c.N, u*s, u*s+q*n)
			}
		})
		if !pinged {
			break
		}
		u := math.Exp(p.Rate)
		climb(&p.Trust, &p.TrustVar, e.TrustLaw, p.Quiet, func(q float64, cycle func(n, own, z float64)) {
			for _, c := range p.Changed {
				if c.Pings > 0 {
					s, n := c.Epochs/c.N, c.Pings/c.N
					cycle(c.N, q*n, u*s+q*n)
				}
			}
		})
	}
}

// rateLaw returns the law of ln u of a page. Of a page that sends N pings, ν per epoch, these
// tell of u as well, since pages are more alike in the share of their changes that sends one:
// ln ν is ln u but for the law of their difference over all pages, and 1/N.
func (e *Pages) rateLaw(p *page) normal {
	law := e.RateLaw
	if epochs, pings := p.seen(); pings > 0 && epochs > 0 {
		byPings := normal{math.Log(pings/epochs) + e.RatioLaw.Mean, e.RatioLaw.Var + 1/pings}
		w := law.Var / (law.Var + byPings.Var)
		law = normal{law.Mean + w*(byPings.Mean-law.Mean), law.Var * (1 - w)}
	}
	return law
}

// seen returns the epochs of all cycles of a page, and the pings in them.
func (p *page) seen() (epochs, pings float64) {
	epochs, pings = p.Same, p.Quiet
	for _, c := range p.Changed {
		epochs, pings = epochs+c.Epochs, pings+c.Pings
	}
	return epochs, pings
}

// climb finds the mode x of the logarithm of a rate v = e^x by Newton's method, and its
// variance. Of each cycle with a change it is given their number, the part y of z that goes as
// v, and z; of the others Σy = v·same. The derivative of ln P(changed) = ln(1 − e^(−z)) is
// g = y/(e^z − 1), and that of g is g − y²e^z/(e^z − 1)²; where that is above 0 it counts as 0,
// which shortens the step.
func climb(x, variance *float64, law normal, same float64, each func(v float64, cycle func(n, y, z float64))) {
	for range 12 {
		v := math.Exp(*x)
		slope, info := -v*same-(*x-law.Mean)/law.Var, v*same+1/law.Var
		each(v, func(n, y, z float64) {
			less := math.Expm1(z)
			g := y / less
			slope += n * g
			if less > 1e150 { // e^z squared is no number, and g is 0
				return
			}
			info += n * max(0, g*g*(less+1)-g)
		})
		step := max(-1, min(1, slope/info))
		*x += step
		*variance = 1 / info
		if math.Abs(step) < 1e-6 {
			return
		}
	}
}

// Fit brings the laws up to date, every so many epochs.
func (e *Pages) Fit(epoch int) {
	if epoch-e.Fitted < lawEpochs && epoch >= e.Fitted {
		return
	}
	e.Fitted = epoch
	e.RateLaw.fit(len(e.Pages), func(i int) (mode, variance float64, shown bool) {
		p := &e.Pages[i]
		return p.Rate, p.RateVar, p.Same > 0 || len(p.Changed) > 0
	})
	e.TrustLaw.fit(len(e.Pages), func(i int) (mode, variance float64, shown bool) {
		p := &e.Pages[i]
		return p.Trust, p.TrustVar, p.pinged()
	})
	e.RatioLaw.fit(len(e.Pages), func(i int) (mode, variance float64, shown bool) {
		p := &e.Pages[i]
		epochs, pings := p.seen()
		return p.Rate - math.Log(pings/epochs), p.RateVar, p.pinged()
	})
	for i := range e.Pages {
		e.step(&e.Pages[i])
	}
}

// Page is a page as it is estimated.
type Page struct {
	Changes float64 // Δ, per epoch
	Unseen  float64 // u, the rate of those without a ping
	Ahead   float64 // by how many epochs its pings since the last crawl make it older
}

// Page returns page i as it is estimated. Of ν pings per epoch pν tell of changes,
//
//	Δ = u + pν
//
// and after n of them and a epochs the copy is fresh with the probability e^(−ua − qn), as
// without a ping after a + nq/u epochs.
func (e *Pages) Page(i int) Page {
	p := &e.Pages[i]
	u := math.Exp(p.Rate)
	epochs, pings := p.seen()
	if pings == 0 && p.Pings == 0 {
		return Page{Changes: u, Unseen: u}
	}
	q, pinged := math.Exp(p.Trust), 0. // the rate of changes that send a ping
	if epochs > 0 {
		pinged = -math.Expm1(-q) * pings / epochs
	}
	u = max(u, leastUnseen/(1-leastUnseen)*pinged)
	return Page{Changes: u + pinged, Unseen: u, Ahead: q * float64(p.Pings) / u}
}

// Clone returns a copy of all that was learned.
func (e *Pages) Clone() *Pages {
	c := *e
	c.Pages = slices.Clone(e.Pages)
	for i := range c.Pages {
		c.Pages[i].Changed = slices.Clone(c.Pages[i].Changed)
	}
	return &c
}

// Import takes up the state of estimates of the same pages, whose own it is from then on;
// without Pages, those that are there.
func (e *Pages) Import(s PageState) error {
	if s.Pages == nil {
		s.Pages = e.Pages
	}
	if n := len(e.Pages); len(s.Pages) != n {
		return fmt.Errorf("estimates of %d pages; the learner has %d", len(s.Pages), n)
	}
	e.PageState = s
	for i := range e.Pages {
		e.Pages[i].Changed = slices.Clone(e.Pages[i].Changed) // JSON leaves room for more
	}
	return nil
}
