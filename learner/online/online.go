package online

import (
	"fmt"
	"math"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/estimate"
	"ephemera/learner/internal/check"
)

// OnlineSettings are the settings of [Online].
type OnlineSettings struct {
	Settings

	// Decay, in 1/epoch, is the decay rate of all sources if it is known, up
	// to some per cent; 0 has the rates estimated from present interest against
	// age.
	Decay float64 `toml:"decay"`

	// Cold is how many crawls a source gets before its estimates are trusted,
	// and ColdShare the share of the budget that these crawls may take.
	Cold      int     `toml:"cold"`
	ColdShare float64 `toml:"cold_share"`

	// The rest is for ablations.

	// Estimate is "items" for inflows foretold from items taken back to their
	// publication, or "harvests" for constant rates estimated from harvests.
	Estimate string `toml:"estimate"`
	// Index is "forecast" for Whittle's index of what is foretold, "critic" for
	// the learned one, which takes rates to be constant, or "auto" for the
	// first where epochs have dates and the second where they have none.
	Index string `toml:"index"`
	// Profile of the hours and days: "mixed", "off", "common" or "own".
	Profile string `toml:"profile"`
	// Memory is "mixed", or "long" for the horizon alone.
	Memory string `toml:"memory"`
	// Tails is "cut" for interest that is cut where it is far above the usual,
	// or "raw".
	Tails string `toml:"tails"`
}

// DefaultOnlineSettings returns the settings that nil stands for: those of
// [DefaultSettings] with a horizon of 2000 epochs, a quarter of the key for
// the margin, and two cold crawls of each source from half the budget.
func DefaultOnlineSettings() OnlineSettings {
	s := OnlineSettings{
		Settings: DefaultSettings(), Cold: 2, ColdShare: .5,
		Estimate: "items", Index: "auto", Profile: "mixed", Memory: "mixed", Tails: "cut",
	}
	s.Horizon = 2000
	// The index of the forecast does not wait to be learned.
	s.MarginShare = .25
	return s
}

// Validate reports the first setting that is out of its range.
func (s *OnlineSettings) Validate() error {
	switch {
	case !(s.Decay >= 0) || math.IsInf(s.Decay, 0):
		return fmt.Errorf("decay is %v; allowed is a finite rate per epoch, or 0 to have it estimated", s.Decay)
	case s.Cold < 0:
		return fmt.Errorf("cold is %d; allowed is 0 or more crawls", s.Cold)
	case !(s.ColdShare >= 0) || s.ColdShare > 1:
		return fmt.Errorf("cold_share is %v; allowed is 0 to 1", s.ColdShare)
	}
	if err := check.First(
		check.OneOf("estimate", s.Estimate, "items", "harvests"),
		check.OneOf("index", s.Index, "auto", "forecast", "critic"),
		check.OneOf("profile", s.Profile, "mixed", "off", "common", "own"),
		check.OneOf("memory", s.Memory, "mixed", "long"),
		check.OneOf("tails", s.Tails, "cut", "raw"),
	); err != nil {
		return err
	}
	return s.Settings.Validate()
}

// Online is the priced actor-critic with nothing known beforehand but
// costs and budget. Rate, decay and mean interest of every source are estimated
// from the items that its crawls bring back, with their age and present
// interest, and what waits at a source is what these estimates foretell: where
// epochs have dates, with the hours of the day and the days of the week.
//
// Sources that have hardly been crawled, and with a horizon those that have
// not been crawled for that long, are visited with a share of the budget of
// their own, the longest waiting first, so that they neither are forgotten nor
// stall the rest.
type Online struct {
	p    *core
	set  OnlineSettings
	est  estimate.Estimates
	fore estimate.Forecast
	cold reserve
}

var _ env.Learner[env.Online] = (*Online)(nil)

// NewOnline returns the learner; nil settings are
// [DefaultOnlineSettings]. It explores with draws from r. It panics if a
// setting is out of its range.
func NewOnline(terms env.Terms, set *OnlineSettings, r *stream.Rand) *Online {
	s := DefaultOnlineSettings()
	if set != nil {
		s = *set
	}
	if err := s.Validate(); err != nil {
		panic("learner: online: " + err.Error())
	}
	l := &Online{p: newCore(terms, &s.Settings, r), set: s}
	l.est.Init(len(terms.Costs), s.Decay, s.Horizon)
	l.fore.Init(terms, estimate.Settings{Horizon: s.Horizon, Profile: s.Profile, Memory: s.Memory, Tails: s.Tails})
	if s.Index == "forecast" || s.Index == "auto" && terms.Length > 0 {
		l.p.index = make([]float64, len(terms.Costs))
	}
	for i := range terms.Costs {
		l.know(i)
		l.p.begin(i)
		l.p.x[i] = l.p.gain(i)
	}
	return l
}

// know passes the estimates of source i on.
func (l *Online) know(i int) {
	rate, decay := l.Estimate(i)
	l.p.know(i, decay, rate/decay) // u* = λξ̄/c
}

// Select implements env.Policy.
func (l *Online) Select(dst []int, o *env.Online) []int {
	p := l.p
	p.check(len(o.Last))
	for i := range p.age {
		p.age[i] = float32(o.Age(i))
	}
	p.foretell(&l.fore, o.Epoch)
	p.plan()
	l.cold.raise(p, l.set.ColdShare, l.isCold)
	return p.choose(dst)
}

// foretell writes the indices at an epoch. Whittle's index of a state x is that
// of a source with the present inflow, whatever the time in which x gathered:
//
//	γ(x) = η((1−α)x − u) + x,   η = log_α(1 − x/u*)
//
// the form of the Remark below Theorem 1 of TCNS, taken at any state, and x where
// x ≥ u*. The inflow u is that of the time to come. One that is about to rise is worth
// waiting for; one that falls is not, and what waits only decays.
func (p *core) foretell(f *estimate.Forecast, epoch int) {
	if p.index == nil {
		return
	}
	for i, x := range p.x {
		loss := float64(p.loss[i])
		p.index[i] = whittle(x, p.ceiling(i)*f.Ahead(i, epoch+1, 1-loss), loss, p.decay[i]) / p.costs[i]
	}
}

// whittle returns the index of state x at the ceiling u*; loss is 1 − α.
func whittle(x, ceil, loss, c float64) float64 {
	if x >= ceil {
		return x
	}
	return index.Remark(x, ceil, loss, -math.Log1p(-x/ceil)/c)
}

// grown returns the state after an epoch without a crawl, with a share of the
// mean inflow.
func (p *core) grown(i int, x, share float64) float64 {
	return x + float64(p.loss[i])*(share*p.ceiling(i)-x)
}

func (l *Online) isCold(i int) bool {
	return l.p.affordable(i) && (l.est.Crawls(i) < l.set.Cold || l.set.Horizon > 0 && float64(l.p.age[i]) > l.set.Horizon)
}

// Update implements env.Learner.
func (l *Online) Update(crawls []env.Crawled, next *env.Online) {
	p := l.p
	p.learn(crawls)
	for _, c := range crawls {
		p.x[c.Source] = 0 // grows to u below
		l.est.Add(c)
		if l.set.Estimate == "items" {
			_, decay := l.est.Source(c.Source)
			l.fore.Add(c, next.Epoch-1, decay, l.est.Doubt(c.Source))
		}
		l.know(c.Source)
	}
	if l.est.Pool(p.n) {
		l.fore.Pool()
		for i := range p.x {
			old := p.ceiling(i)
			l.know(i)
			if old > 0 && l.fore.Known() {
				p.x[i] *= p.ceiling(i) / old
			}
		}
	}
	// x ← αx + u, with what is known of the source by now
	for i, x := range p.x {
		p.x[i] = p.grown(i, x, l.fore.Share(i, next.Epoch))
	}
}

// Price returns the learned price λ of a budget unit, in interest.
func (l *Online) Price() float64 { return l.p.price }

// Threshold returns the learned threshold of source i as an age, in epochs.
func (l *Online) Threshold(i int) float64 { return l.p.threshold(i) }

// InverseIndex returns the learned inverse index at the learned price as a
// state, in interest.
func (l *Online) InverseIndex(i int) float64 { return l.p.inverse(i) }

// Estimate returns what is known of source i by now: rate is the interest that
// is published per epoch, λξ̄, and decay is c, 1/epoch.
func (l *Online) Estimate(i int) (rate, decay float64) {
	rate, decay = l.est.Source(i)
	if l.fore.Known() {
		rate = l.fore.Mean(i)
	}
	return rate, decay
}

// Share returns what source i is foretold to publish between the decisions
// epoch−1 and epoch, over its mean.
func (l *Online) Share(i, epoch int) float64 { return l.fore.Share(i, epoch) }

// OnlineState is the whole state of a [Online] learner as data.
type OnlineState struct {
	Priced    State                  `json:"priced"`
	State     []float64              `json:"state"` // x̂, interest
	Estimates estimate.State         `json:"estimates"`
	Forecasts estimate.ForecastState `json:"forecasts"`
	Credit    float64                `json:"credit"` // budget units saved up for cold sources
}

// State returns the learner's whole state.
func (l *Online) State() OnlineState {
	return OnlineState{Priced: l.p.state(), State: append([]float64(nil), l.p.x...), Estimates: l.est.State(), Forecasts: l.fore.State(), Credit: l.cold.credit}
}

// SetState takes up a state that State returned. After an error the learner
// must not be used.
func (l *Online) SetState(s OnlineState) error {
	if err := l.est.SetState(s.Estimates); err != nil {
		return err
	}
	if err := l.fore.SetState(s.Forecasts); err != nil {
		return err
	}
	if err := check.Finite("state", s.State, len(l.p.x)); err != nil {
		return err
	}
	if !(s.Credit >= 0) || math.IsInf(s.Credit, 1) {
		return fmt.Errorf("credit is %v; allowed is a finite number of 0 or more", s.Credit)
	}
	for i := range l.p.x {
		l.know(i)
	}
	copy(l.p.x, s.State)
	l.cold.credit = s.Credit
	return l.p.setState(s.Priced)
}

// Frozen returns the policy that would be deployed now.
func (l *Online) Frozen() *OnlinePolicy {
	n := len(l.p.costs)
	f := &OnlinePolicy{p: l.p.frozen(), fore: l.fore.Clone(), epoch: -1, last: make([]int, n)}
	f.p.x = make([]float64, n)
	if l.p.index != nil {
		f.p.index = make([]float64, n)
	}
	return f
}

// Fallbacks counts how often a critic's inverse was not trusted and the
// Tikhonov form was taken.
func (l *Online) Fallbacks() int { return l.p.fallbacks() }

// OnlinePolicy is what a [Online] learner has learned, as a policy that
// learns no more and draws nothing. Its dates are those of the world in which
// it has learned: at epoch 0 it is the time of that world's first decision.
type OnlinePolicy struct {
	p     *core
	fore  estimate.Forecast
	epoch int   // of the last Select, −1 before
	last  []int // Last at that time
}

var _ env.Policy[env.Online] = (*OnlinePolicy)(nil)

// Select implements env.Policy.
func (f *OnlinePolicy) Select(dst []int, o *env.Online) []int {
	p := f.p
	p.check(len(o.Last))
	for i := range p.age {
		age := o.Age(i)
		p.age[i] = float32(age)
		p.x[i] = f.waiting(i, age, o)
		f.last[i] = o.Last[i]
	}
	f.epoch = o.Epoch
	p.foretell(&f.fore, o.Epoch)
	p.rank(p.key, p.x, p.age)
	return p.sel.Top(dst, p.key)
}

// waiting returns what is foretold to wait at source i. It is a function of the
// view alone; where the last view was that of the epoch before, it goes on from
// there.
func (f *OnlinePolicy) waiting(i, age int, o *env.Online) float64 {
	p := f.p
	if f.fore.Even(i) {
		return p.mean(i, float64(age))
	}
	if age > 1 && f.epoch == o.Epoch-1 && f.last[i] == o.Last[i] {
		return p.grown(i, p.x[i], f.fore.Share(i, o.Epoch))
	}
	var x float64
	u, alpha := p.gain(i), 1-float64(p.loss[i])
	for k, w := 0, 1.0; k < age && w > 1e-9; k++ {
		x += w * u * f.fore.Share(i, o.Epoch-k)
		w *= alpha
	}
	return x
}

// reserve keeps a share of the budget for sources that must be visited
// whatever their key.
type reserve struct {
	credit float64 // budget units
	key    []float64
	pick   []int
}

// raise lifts the keys of the longest waiting cold sources above all others,
// as many as the saved share of the budget pays for.
func (r *reserve) raise(p *core, share float64, cold func(i int) bool) {
	if r.key == nil {
		r.key = make([]float64, len(p.key))
	}
	any := false
	least := math.Inf(1)
	for i := range r.key {
		r.key[i] = math.Inf(-1)
		if cold(i) {
			any = true
			r.key[i] = float64(p.age[i])
			least = min(least, p.costs[i])
		}
	}
	if !any {
		r.credit = 0
		return
	}
	// The share may save up for one crawl when it is less than that.
	r.credit = min(r.credit+share*p.budget, max(p.budget, least))
	r.pick = p.sel.TopWithin(r.pick[:0], r.key, r.credit)
	for _, i := range r.pick {
		r.credit = max(0, r.credit-p.costs[i])
		p.key[i] = math.Inf(1)
	}
}
