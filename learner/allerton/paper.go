package allerton

import (
	"encoding/json"
	"fmt"
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/features"
	"ephemera/learner/internal/check"
	"ephemera/learner/lspe"
)

// Settings are the settings of the paper's learner.
type Settings struct {
	Kappa float64    `json:"kappa" toml:"kappa"` // κ, steepness of the logit, 1/interest
	Shift float64    `json:"shift" toml:"shift"` // shift of the logit, interest
	Gamma float64    `json:"gamma" toml:"gamma"` // γ, step of the critic's weights
	A     lspe.Steps `json:"a" toml:"a"`         // a(n), step of the thresholds
	B     lspe.Steps `json:"b" toml:"b"`         // b(n), step of the critic's averages

	// Reward is what the critic is told that an epoch earned: "crawled", the
	// interest that the crawls brought back, which is the objective, or
	// "literal", Σ Xᵢ whether crawled or not, as η and b̄ are printed.
	Reward string `json:"reward" toml:"reward"`
	// Act is "probabilistic", each source by itself with probability fᵢ, which
	// may cost more than the budget, as in the paper's experiment; or "budget",
	// the sources with the greatest exponents within the budget.
	Act string `json:"act" toml:"act"`
	// Start is where in [u, u*] all thresholds begin: 0 at u, 1 at u*.
	Start float64 `json:"start" toml:"start"`
	// Projection is what a threshold that is projected does to its gradient:
	// "keep" takes (8) as printed, "cut" sets it to 0.
	Projection string `json:"projection" toml:"projection"`
	// Features are "unit", polynomials of x/u*, or "raw", of x. The recursion
	// is the same but for ε and δ, which the scale gives a meaning.
	Features string `json:"features" toml:"features"`
	// Degree is the highest degree of the features, and Terms says which
	// there are: "full", all products, as in the paper; "separable", powers
	// only; "auto", full up to 20 sources. An epoch costs O(ℓ²), a fallback
	// O(ℓ³), and full quadratics of 64 sources have ℓ = 2144.
	Degree int    `json:"degree" toml:"degree"`
	Terms  string `json:"terms" toml:"terms"`
	// Tikhonov is "fallback" or, as the paper ran it, "always".
	Tikhonov  string  `json:"tikhonov" toml:"tikhonov"`
	Delta     float64 `json:"delta" toml:"delta"`         // δ, see lspe.InverseSettings
	Epsilon   float64 `json:"epsilon" toml:"epsilon"`     // ε, see lspe.InverseSettings
	Tolerance float64 `json:"tolerance" toml:"tolerance"` // residual up to which the inverse is trusted
	Condition float64 `json:"condition" toml:"condition"` // condition number up to which B is inverted as it is
	Check     int     `json:"check" toml:"check"`         // greatest number of epochs between two checks
}

// DefaultSettings returns the settings of Allerton, sections IV and V:
// κ = 2, γ = 0.05, shift 0.5, a(n) = c/⌈n/500⌉, b(n) = c/⌈n/1000⌉^(2/3),
// probabilistic crawls. Of c the paper says that it lies in (0, 1), and of δ
// that it is small; c = 0.5, the middle, ε, δ and the start of the thresholds,
// the middle of their interval, are ours.
func DefaultSettings() Settings {
	inv := lspe.DefaultInverseSettings()
	return Settings{
		Kappa: 2, Shift: .5, Gamma: .05,
		A:      lspe.Steps{Scale: .5, Block: 500, Power: 1},
		B:      lspe.Steps{Scale: .5, Block: 1000, Power: 2. / 3},
		Reward: "crawled", Act: "probabilistic", Start: .5, Projection: "keep",
		Features: "unit", Degree: 2, Terms: "auto", Tikhonov: "fallback",
		Delta: inv.Delta, Epsilon: inv.Epsilon, Tolerance: inv.Tolerance, Condition: inv.Condition, Check: inv.Every,
	}
}

// Validate reports the first field that is out of its range: the field, what
// was found and what is allowed, in one line.
func (s Settings) Validate() error {
	switch {
	case !(s.Kappa > 0) || math.IsInf(s.Kappa, 0):
		return fmt.Errorf("kappa is %v; allowed is a finite number above 0", s.Kappa)
	case math.IsNaN(s.Shift) || math.IsInf(s.Shift, 0):
		return fmt.Errorf("shift is %v; allowed is a finite number", s.Shift)
	case s.Degree < 1 || s.Degree > 6:
		return fmt.Errorf("degree is %d; allowed is 1 to 6", s.Degree)
	case !(s.Start >= 0 && s.Start <= 1):
		return fmt.Errorf("start is %v; allowed is 0 (at u) to 1 (at u*)", s.Start)
	}
	if err := s.A.Validate(); err != nil {
		return fmt.Errorf("a: %w", err)
	}
	if err := check.First(
		check.OneOf("reward", s.Reward, "crawled", "literal"),
		check.OneOf("act", s.Act, "probabilistic", "budget"),
		check.OneOf("projection", s.Projection, "keep", "cut"),
		check.OneOf("features", s.Features, "unit", "raw"),
		check.OneOf("terms", s.Terms, "auto", "full", "separable"),
		check.OneOf("tikhonov", s.Tikhonov, "fallback", "always"),
	); err != nil {
		return err
	}
	err := s.critic().Validate()
	if s.Check < 1 || s.Check > 256 { // the critic calls it every
		return fmt.Errorf("check is %d; allowed is 1 to 256", s.Check)
	}
	return err
}

func (s Settings) critic() lspe.Settings {
	return lspe.Settings{Gamma: s.Gamma, Step: s.B, Inverse: lspe.InverseSettings{
		Epsilon: s.Epsilon, Delta: s.Delta, Tolerance: s.Tolerance, Condition: s.Condition, Every: s.Check,
		Always: s.Tikhonov == "always",
	}}
}

// Learner is the learner of Allerton: LSPE(0) as the critic and thresholds in
// logit form as the actor. It knows uᵢ and uᵢ* of its sources, on which the
// thresholds are projected, and sees the mean states.
type Learner struct {
	set     Settings
	phi     *features.Polynomial
	critic  *lspe.Critic
	a       lspe.Stepper
	actor   actor
	literal bool
	cut     bool

	fNow, fNext []float64 // φ(X(n)), φ(X(n+1))
	next        []float64 // state of fNext
	known       bool      // fNext is φ(next)
	pending     bool      // between Select and Update
	crawled     []bool    // ν, all false between two Updates
}

var _ env.Learner[env.Model] = (*Learner)(nil)

// maxCeiling is the greatest ceiling for which no matrix can overflow.
const maxCeiling = 1e30

// mostFeatures bounds ℓ: the critic holds five matrices of ℓ² numbers.
const mostFeatures = 1 << 13

// mostCrossed is the number of sources up to which "auto" takes all products.
const mostCrossed = 20

// New returns the learner for the sources of an instance. It draws from r.
func New(in env.Instance, set Settings, r *stream.Rand) (*Learner, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	if err := set.Validate(); err != nil {
		return nil, err
	}
	n := len(in.Sources)
	t := Thresholds{Kappa: set.Kappa, Shift: set.Shift, Lo: make([]float64, n), Hi: make([]float64, n), Q: make([][3]float64, n)}
	fs := features.Settings{
		Inputs: n, Degree: set.Degree,
		Separable: set.Terms == "separable" || set.Terms == "auto" && n > mostCrossed,
	}
	if set.Features == "unit" {
		fs.Hi = make([]float64, n)
	}
	for i, s := range in.Sources {
		t.Lo[i], t.Hi[i] = s.Gain(), s.Ceiling()
		// Raw features enter B with the fourth power and BᵀB with the eighth.
		if t.Hi[i] > maxCeiling || t.Hi[i] > 0 && t.Hi[i] < 1/maxCeiling {
			return nil, fmt.Errorf("instance %q, source %d (%q): ceiling is %v; allowed are 0 and %v to %v for this learner", in.ID, i+1, s.Name, t.Hi[i], 1/maxCeiling, maxCeiling)
		}
		t.Q[i][0] = t.Lo[i] + set.Start*(t.Hi[i]-t.Lo[i])
		if fs.Hi != nil {
			if fs.Hi[i] = t.Hi[i]; fs.Hi[i] == 0 {
				fs.Hi[i] = 1 // a source without content stays at 0
			}
		}
	}
	phi, err := features.New(fs)
	if err != nil {
		return nil, err
	}
	if phi.Len() > mostFeatures {
		return nil, fmt.Errorf("%d sources to degree %d make %d features; allowed for this learner are %d, whose matrices take 2.7 GB", n, set.Degree, phi.Len(), mostFeatures)
	}
	critic, err := lspe.New(phi.Len(), set.critic())
	if err != nil {
		return nil, err
	}
	return &Learner{
		set: set, phi: phi, critic: critic, a: lspe.Stepper{Steps: set.A},
		actor:   newActor(t, in.Terms(), set.Act == "budget", r),
		literal: set.Reward == "literal", cut: set.Projection == "cut",
		fNow: make([]float64, phi.Len()), fNext: make([]float64, phi.Len()),
		next: make([]float64, n), crawled: make([]bool, n),
	}, nil
}

// Select implements env.Policy.
func (p *Learner) Select(dst []int, o *env.Model) []int {
	dst = p.actor.Select(dst, o)
	if !p.known || !equal(p.next, p.actor.x) {
		p.phi.To(p.fNext, p.actor.x)
	}
	p.fNow, p.fNext = p.fNext, p.fNow
	p.known, p.pending = false, true
	return dst
}

// Update implements env.Learner.
func (p *Learner) Update(crawls []env.Crawled, o *env.Model) {
	if !p.pending {
		panic("learner: Update without a Select before it")
	}
	p.pending = false
	act := &p.actor
	var reward float64
	for _, c := range crawls {
		p.crawled[c.Source] = true
		reward += c.Interest
	}
	if p.literal {
		reward = act.sum
	}
	copy(p.next, o.Mean)
	p.phi.To(p.fNext, p.next)
	p.known = true

	// (9): q(n+1) = q(n) + a(n) ∇ log p(X(n+1)|X(n)) · Σ r(n) φ(X(n+1))
	av := p.a.Value(p.critic.Steps()+1) * p.critic.Value(p.fNext)
	for i, active := range p.crawled {
		p.crawled[i] = false
		if p.cut && act.binds[i] {
			continue
		}
		h := av * act.th.Score(act.f[i], act.g[i], active)
		s := act.sum - act.x[i]
		q := &act.th.Q[i]
		q[0] += h
		q[1] += h * s
		q[2] += h * s * s
	}
	p.critic.Step(p.fNow, p.fNext, reward)
}

// Thresholds returns the thresholds as they are now. They are the learner's
// own and change with the next Update.
func (p *Learner) Thresholds() *Thresholds { return &p.actor.th }

// Critic returns the critic. It is the learner's own.
func (p *Learner) Critic() *lspe.Critic { return p.critic }

// Counts returns what the critic's inverse went through, fallbacks among it.
func (p *Learner) Counts() lspe.Counts { return p.critic.Counts() }

// Policy returns the learned policy as it stands, without learning: it acts as
// the learner does. A probabilistic one draws from r.
func (p *Learner) Policy(r *stream.Rand) env.Policy[env.Model] { return p.Frozen(p.set.Act, r) }

// Frozen returns the learned thresholds as a policy of that act, "budget" or
// "probabilistic". Under "budget" nothing is drawn and r may be nil. It panics
// if there is no such act.
func (p *Learner) Frozen(act string, r *stream.Rand) env.Policy[env.Model] {
	if err := check.OneOf("act", act, "probabilistic", "budget"); err != nil {
		panic("learner: " + err.Error())
	}
	t := p.actor.th
	t.Q = append([][3]float64(nil), t.Q...)
	a := newActor(t, p.actor.terms, act == "budget", r)
	return &a
}

// actor chooses by thresholds, and keeps what the score needs.
type actor struct {
	th    Thresholds
	terms env.Terms
	sel   *baselines.Selector // nil: probabilistic
	rand  *stream.Rand

	x     []float64 // X(n)
	sum   float64   // Σ X(n)
	l     []float64 // exponents
	f, g  []float64 // fᵢ and 1 − fᵢ
	binds []bool    // the projection binds
	// memo holds the last exponent of each source for which an exponential was
	// taken: a source that returns to u and is projected at u repeats it.
	memo []struct{ l, f, g float64 }
}

func newActor(t Thresholds, terms env.Terms, budget bool, r *stream.Rand) actor {
	n := len(t.Q)
	a := actor{
		th: t, terms: terms, rand: r,
		x: make([]float64, n), l: make([]float64, n), f: make([]float64, n), g: make([]float64, n), binds: make([]bool, n),
		memo: make([]struct{ l, f, g float64 }, n),
	}
	for i := range a.memo {
		a.memo[i].l = math.NaN() // differs from every exponent
	}
	if budget {
		a.sel = baselines.NewSelector(terms.Costs, terms.Budget)
	}
	return a
}

// Select implements env.Policy. A probabilistic actor takes one draw per
// source and epoch, whatever the thresholds are.
func (a *actor) Select(dst []int, o *env.Model) []int {
	if len(o.Mean) != len(a.x) {
		panic(fmt.Sprintf("learner: %d states for %d sources", len(o.Mean), len(a.x)))
	}
	copy(a.x, o.Mean)
	a.sum = Sum(a.x)
	for i, x := range a.x {
		l, binds := a.th.Exponent(i, x, a.sum-x)
		a.l[i], a.binds[i] = l, binds
		switch m := &a.memo[i]; {
		case l >= saturated:
			a.f[i], a.g[i] = 1, 0
		case l <= -saturated:
			a.f[i], a.g[i] = 0, 1
		default:
			if l != m.l {
				m.l = l
				m.f, m.g = Logit(l)
			}
			a.f[i], a.g[i] = m.f, m.g
		}
		if a.sel == nil && float64(a.rand.Uint64()>>11)*0x1p-53 < a.f[i] {
			dst = append(dst, i)
		}
	}
	if a.sel != nil {
		dst = a.sel.Top(dst, a.l)
	}
	return dst
}

func equal(a, b []float64) bool {
	for i, v := range a {
		if v != b[i] {
			return false
		}
	}
	return true
}

// State is the whole state of a Paper as data.
type State struct {
	Settings Settings     `json:"settings"`
	Q        [][3]float64 `json:"q"` // thresholds, one row per source
	Critic   lspe.State   `json:"critic"`
	Stream   []byte       `json:"stream,omitempty"` // of the draws
}

// State returns a copy of the state. It panics between a Select and its Update.
func (p *Learner) State() State {
	if p.pending {
		panic("learner: State between a Select and its Update")
	}
	st := State{Settings: p.set, Q: append([][3]float64(nil), p.actor.th.Q...), Critic: p.critic.State()}
	if p.actor.rand != nil {
		st.Stream = p.actor.rand.State()
	}
	return st
}

// SetState takes up a state that State returned. The settings must be those
// of the learner. On an error the learner must not be used further.
func (p *Learner) SetState(st State) error {
	if st.Settings != p.set {
		return fmt.Errorf("settings of the state are %s; allowed are those of the learner, %s", compact(st.Settings), compact(p.set))
	}
	if len(st.Q) != len(p.actor.th.Q) {
		return fmt.Errorf("q has %d rows; allowed is one for each of %d sources", len(st.Q), len(p.actor.th.Q))
	}
	for i, q := range st.Q {
		if err := check.Finite("q of source "+fmt.Sprint(i+1), q[:], 3); err != nil {
			return err
		}
	}
	if (st.Stream != nil) != (p.actor.rand != nil) {
		return fmt.Errorf("stream is %d bytes; allowed is the state of the learner's stream", len(st.Stream))
	}
	if st.Stream != nil {
		if err := p.actor.rand.SetState(st.Stream); err != nil {
			return fmt.Errorf("stream: %w", err)
		}
	}
	if err := p.critic.SetState(st.Critic); err != nil {
		return fmt.Errorf("critic: %w", err)
	}
	copy(p.actor.th.Q, st.Q)
	p.a = lspe.Stepper{Steps: p.set.A}
	p.known, p.pending = false, false
	return nil
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
