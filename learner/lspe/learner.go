package lspe

import (
	"fmt"
	"math"

	"ephemera/env"
	"ephemera/env/stream"
)

// Learner is the actor-critic that knows nothing but costs and budget, and sees of
// each crawl its age and harvest. An epoch costs what its crawls cost.
type Learner struct {
	set  Settings
	a, b steps // of actor and critic
	rand *stream.Rand
	schedule

	src    []Source
	pooled pooled
	unseen []int32 // sources that were never crawled, in the order in which they will be
	cold   bool    // the first pass is going on

	epoch   int     // of the Select to come
	epochs  int     // since the cold start, but for changes of the world
	price   float64 // λ, interest per budget unit
	harvest float64 // h̄, running mean of the harvest per budget unit that was crawled
	plan    float64 // Σ C/θ, what the thresholds spend per epoch
	share   float64 // sources that jumped among the last 4N crawls
	changed int     // epoch of the last change of the world

	// Running means over crawls of (X − aH̄)² and (aH̄)²: their ratio is σ²/X̄².
	spread, square float64
	between        between

	fallbacks int // solutions by Tikhonov because an inverse was not trusted
}

var _ env.Learner[env.Online] = (*Learner)(nil)

// New returns the learner for what every crawler knows of a world; nil settings
// are [DefaultSettings]. It explores with draws from r, one for each crawl.
func New(t env.Terms, set *Settings, r *stream.Rand) (*Learner, error) {
	s := DefaultSettings()
	if set != nil {
		s = *set
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if r == nil {
		panic("lspe: no random stream")
	}
	l := &Learner{set: s, rand: r, schedule: newSchedule(t), src: make([]Source, len(t.Costs)), cold: true}
	l.a, l.b = newSteps(s.A), newSteps(s.B)
	l.pooled = newPooled(l.round)
	for i := range l.src {
		l.src[i].Last = -1
	}
	l.line()
	return l, nil
}

// line puts all sources in line for their first crawl.
func (l *Learner) line() {
	l.unseen = l.unseen[:0]
	for i := range l.src {
		l.src[i].Cycles, l.src[i].Queued = 0, l.affordable(i)
		if l.src[i].Queued {
			l.unseen = append(l.unseen, int32(i))
		}
	}
	l.changed = l.epoch
}

// noise returns σ²/X̄² of a cycle's harvest, drawn to that of all sources: one over the
// number of items, or of batches, that it brings.
func (l *Learner) noise(s *Source) float64 {
	v := l.spread / l.square
	if s.Mean > 0 {
		k := float64(s.Cycles)
		v = (k*s.Dispersion/s.Mean + variationPrior*v) / (k + variationPrior)
	}
	return v
}

// variation returns the same with the share by which the expectation may be wrong.
func (l *Learner) variation(s *Source) float64 { return l.noise(s) + modelError*modelError }

// Select implements env.Policy.
func (l *Learner) Select(dst []int, o *env.Online) []int {
	if o.Epoch != l.epoch {
		l.follow(o)
	}
	if o.Limits != nil && o.Limits.Budget != l.budget {
		l.setBudget(o.Limits.Budget)
	}
	if !l.cold {
		l.gather(o, l.wake)
	}
	l.firstCrawls(o)
	return l.choose(dst, o, l.price)
}

// follow takes up a view that does not follow the one before: another world, or
// another time in it.
func (l *Learner) follow(o *env.Online) {
	if len(o.Last) != len(l.src) {
		panic(fmt.Sprintf("lspe: view of %d sources; the learner has %d", len(o.Last), len(l.src)))
	}
	l.epoch, l.changed = o.Epoch, o.Epoch-1
	l.clear(o.Epoch)
	for i := range l.src {
		l.src[i].Last = int32(o.Last[i])
		if l.src[i].Cycles > 0 && !l.cold {
			l.sleep(l.standing(i, float64(l.src[i].Noise), l.mean(i)))
		}
	}
}

// wake lets the actor of a source that has woken look at the price once more.
func (l *Learner) wake(i int32, epoch int) Waiting {
	mean := l.mean(int(i))
	if epoch > int(l.src[i].Last)+1 {
		l.act(int(i), wakeStep, mean)
	}
	return l.standing(int(i), float64(l.src[i].Noise), mean)
}

// HarvestsOnly implements env.HarvestsOnly.
func (l *Learner) HarvestsOnly() {}

// Update implements env.Learner: critic and actor of the sources that were
// crawled, and the price.
func (l *Learner) Update(crawls []env.Crawled, next *env.Online) {
	now := next.Epoch - 1
	for _, i := range next.Failed {
		l.src[i].FailedNow++
	}
	for _, c := range crawls {
		l.succeeded(c.Source)
	}
	for _, c := range crawls {
		s := &l.src[c.Source]
		before := s.Last
		s.Last = int32(now)
		if _, asleep := l.ring.Wake(c.Source); asleep { // crawled by somebody else's choice
			l.ring.Remove(c.Source)
		}
		switch age := float64(max(1, c.Age)); {
		case l.cold:
			// Kept for the end of the first pass.
			s.Mean, s.Span, s.Cycles = c.Interest, float32(age), 1
		case s.Cycles == 0:
			l.restart(c.Source, age, c.Interest)
			l.draw(s)
			l.sleep(l.standing(c.Source, float64(s.Noise), l.mean(c.Source)))
		default:
			if int(before) < l.changed {
				s.Cycles = min(s.Cycles, int32(worldMemory))
			}
			l.close(c.Source, age, c.Interest, now)
		}
	}
	for len(l.unseen) > 0 && (l.src[l.unseen[0]].Cycles > 0 || !l.affordable(int(l.unseen[0]))) {
		l.src[l.unseen[0]].Queued = false
		l.unseen = l.unseen[1:]
	}
	l.release(func(w Waiting) bool { return w.Last != l.src[w.ID].Last })
	l.epoch = next.Epoch
	l.epochs++
	switch {
	case !l.cold:
		l.updatePrice()
	case len(l.unseen) == 0 || float64(l.epoch-l.changed) > l.round+1:
		l.start()
	}
}

// close takes in the cycle that a crawl of source i has closed, and puts it to
// sleep until it is due again.
func (l *Learner) close(i int, age, harvest float64, now int) {
	s := &l.src[i]
	l.harvest += (harvest/l.cost(i) - l.harvest) / harvestMemory
	whole := age
	age, harvest = l.shorten(s, age, harvest)
	psi := l.pooled.features(age)
	level, pooled := l.level(s)
	expected := level * l.pooled.of(&psi)
	l.spread += ((harvest-expected)*(harvest-expected) - l.spread) / harvestMemory
	l.square += (expected*expected - l.square) / harvestMemory
	changed := s.changeDetected(s.z(age), harvest)
	l.count(changed, now)
	if changed {
		l.restart(i, age, harvest)
	} else {
		l.compare(s, age, harvest, &psi, level, pooled)
		s.Cycles++
		level, center := l.learn(i, age, harvest, &psi, l.weight(s))
		if age == whole { // else it was cut by the curve itself, and says nothing of it
			v := l.variation(s)
			center = l.pooled.shifted(&psi, &center, s.Theta, v)
			l.pooled.add(&psi, &center, harvest, level, v)
		}
	}
	mean := l.mean(i)
	if !changed {
		s.LastTheta = 0
		l.act(i, 1, mean)
		s.LastTheta = float32(s.Theta)
	}
	l.draw(s)
	l.sleep(l.standing(i, float64(s.Noise), mean))
}

// weight returns how much a cycle counts,
//
//	b = max(b(k), min(½, |ln(S̄/θ)|³) min(1, X̄²/σ²))
//
// S̄ being the mean length of the cycles so far. Cycles of another threshold say little
// of the present one: once the actor has left them behind they are forgotten, and
// at a threshold that stays the second term is 0. Where a harvest has less than an item,
// so that its variance σ² exceeds X̄², one cycle says less than the many that would go.
func (l *Learner) weight(s *Source) float64 {
	left := math.Abs(math.Log(float64(s.Span) / s.Theta))
	evidence := 1.
	if s.Dispersion > s.Mean {
		evidence = s.Mean / s.Dispersion
	}
	return max(l.b.at(int(s.Cycles)), min(forgetMost, left*left*left)*evidence)
}

// shorten cuts a cycle to 2θ + 1 epochs and its harvest by the pooled curve.
func (l *Learner) shorten(s *Source, age, harvest float64) (float64, float64) {
	if most := math.Round(longestCycle*s.Theta + 1); age > most {
		return most, harvest * l.pooled.at(most) / l.pooled.at(age)
	}
	return age, harvest
}

// Rescale takes in that what source i has brought so far is worth so many times what it
// was thought to be. All that is learned from the harvests of a source is linear in them.
func (l *Learner) Rescale(i int, by float64) {
	s := &l.src[i]
	s.Dispersion *= by
	s.Mean *= by
	for m := range s.Harvests {
		s.Harvests[m] *= by
		s.Crawl[m] *= by
	}
	for m := range s.Wait {
		s.Wait[m] *= by
	}
}

// updatePrice takes a step of the multiplier of the budget, on the slowest time
// scale, by what the thresholds plan to spend:
//
//	λ ← max(0, λ + d(m) max(λ, h̄/10) clip(ΣC/θ/M̂ − 1, 1))
func (l *Learner) updatePrice() {
	if l.set.Price == "off" {
		return
	}
	d := l.set.D.At(1 + int(float64(l.epochs)/l.round))
	l.price = max(0, l.price+d*max(l.price, priceFloor*l.harvest)*clip(l.plan/l.capacity-1))
	for i := range l.slots {
		s := &l.slots[i]
		s.Price = max(0, s.Price+d*max(s.Price, priceFloor*l.harvest)*clip(s.Plan/s.room-1))
	}
}

// Price returns the learned price λ of a budget unit, in interest.
func (l *Learner) Price() float64 { return l.price }

// Fallbacks counts how often an inverse was not trusted and the Tikhonov form was taken.
func (l *Learner) Fallbacks() int { return l.fallbacks }

// Threshold returns the learned threshold θ of source i as an age, in epochs: the
// inverse index at the learned price. It is a round where nothing was learned of
// it, and +Inf where a crawl costs more than the budget.
func (l *Learner) Threshold(i int) float64 {
	switch s := &l.src[i]; {
	case !l.affordable(i):
		return math.Inf(1)
	case l.cold || s.Cycles == 0:
		return l.round
	default:
		return s.Theta
	}
}
