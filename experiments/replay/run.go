package replay

import (
	"context"
	"math"
	"time"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/stats"
)

// play runs a learner or policy in the replayed window from its beginning, and
// returns its crawls. What is told of each epoch's end is its number, from 1, and
// the learner.
func (r *runner) play(ctx context.Context, w window, budget float64, f form, e *experiments.Entry, level env.Level, watch func(epoch int, run experiments.Running)) ([]crawl, error) {
	in := r.hindsight(w, budget, f)
	log := r.q.Log.Between(int64(w.begin), int64(w.to))
	o := env.ReplayOptions{
		Epoch: time.Duration(r.length) * time.Second, Decay: math.Ln2 / f.half(), Budget: budget,
		Items: level == env.LevelOnline, Part: env.PartWhole,
	}
	scene := experiments.Scene{
		Instance: in, Epochs: r.epochs(w),
		Open: func(uint64, env.Level, bool) (env.World, error) { return env.NewReplay(log, in, o) },
	}
	var crawls []crawl
	_, err := scene.Play(ctx, experiments.Play{
		Entry: e, Level: level, Seed: r.q.Seed, Evaluation: -1,
		Watch: func(run experiments.Running) experiments.Watcher {
			return func(n int, _ float64, got []env.Crawled) error {
				at := w.begin + float64(n+1)*r.length
				for _, c := range got {
					crawls = append(crawls, crawl{c.Source, at})
				}
				if watch != nil {
					watch(n+1, run)
				}
				return nil
			}
		},
	})
	return crawls, err
}

// half returns the half-life of an exponential form, hours.
func (f form) half() float64 { return math.Ln2 / f.Param[0] }

// hindsight returns the sources with their mean rate and interest over the
// measured part, which no scheduler knows beforehand.
func (r *runner) hindsight(w window, budget float64, f form) env.Instance {
	in := env.Instance{ID: "recording", Budget: budget, Sources: make([]env.Source, len(r.q.Log.Names))}
	for i, name := range r.q.Log.Names {
		n, sum := r.cat.published(i, w.from, w.to)
		in.Sources[i] = env.NewSource(name, n*r.length/(w.to-w.from), r.length/3600*math.Ln2/f.half(), sum/max(1, n))
	}
	return in
}

// learn runs the learner in the whole window, makes a timetable of what was
// learned in the end, and tries out the one of what was learned by the middle.
func (r *runner) learn(ctx context.Context, w window, middle int, budget float64, a *Answer) ([]crawl, error) {
	var frozen env.Agent
	var last experiments.Running
	crawls, err := r.play(ctx, w, budget, a.Form, r.learner, env.LevelOnline, func(epoch int, run experiments.Running) {
		if last = run; epoch == middle {
			frozen = run.Trainee.Frozen()
		}
	})
	if err != nil {
		return nil, err
	}
	if a.Timetable, err = r.timetable(ctx, last.Trainee.Frozen(), w.begin, r.epochs(w)); err != nil {
		return nil, err
	}
	return crawls, r.try(ctx, frozen, w, middle, a)
}

// try replays, as told, the timetable of a policy that was frozen in the middle,
// from there to the end, beside the policy itself.
func (r *runner) try(ctx context.Context, policy env.Agent, w window, middle int, a *Answer) error {
	alone, err := r.follow(ctx, policy, w.begin, middle, r.epochs(w)-middle)
	if err != nil {
		return err
	}
	plan, err := r.timetable(ctx, policy, w.begin, middle)
	if err != nil {
		return err
	}
	half := w.begin + float64(middle)*r.length
	later := window{half, half, w.to}
	a.Frozen = r.measure(alone, later, a.Form)
	a.Replayed = r.measure(plan.between(half, w.to), later, a.Form)
	return nil
}

// epochs returns how many decisions there are in a window.
func (r *runner) epochs(w window) int { return int(math.Round((w.to - w.begin) / r.length)) }

// follow runs a policy that learns no more, and sees nothing but its own crawls,
// from an epoch on that is counted from begin.
func (r *runner) follow(ctx context.Context, policy env.Agent, begin float64, epoch, epochs int) ([]crawl, error) {
	view := &env.Observed{}
	view.Epoch, view.Last = epoch, make([]int, len(r.q.Log.Names))
	for i := range view.Last {
		view.Last[i] = epoch - 1 // as if all had just been crawled
	}
	var all []crawl
	var now []int
	for n := range epochs {
		if n%16 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		now = policy.Select(now[:0], view)
		at := begin + float64(view.Epoch+1)*r.length
		for _, i := range now {
			all = append(all, crawl{i, at})
			view.Last[i] = view.Epoch
		}
		view.Epoch++
	}
	return all, nil
}

// timetable lets a policy that learns no more run for two weeks from an epoch
// on, and returns the crawls of the second.
func (r *runner) timetable(ctx context.Context, policy env.Agent, begin float64, epoch int) (timetable, error) {
	crawls, err := r.follow(ctx, policy, begin, epoch, int(math.Ceil(2*week/r.length)))
	if err != nil {
		return nil, err
	}
	from := begin + float64(epoch)*r.length + week
	var t timetable
	for _, c := range crawls {
		if c.At > from && c.At <= from+week {
			t = append(t, c)
		}
	}
	return t, nil
}

// wrong measures what it costs to schedule by a form that is not the true one:
// by the index of the form, with rates from the first half, in the second.
func (r *runner) wrong(ctx context.Context, a *Answer, half, to float64) error {
	w := window{half, half, to}
	first := float64(r.q.Log.First)
	a.Wrong = make([][]float64, len(a.Fits))
	crawls := make([][]crawl, len(a.Fits))
	for k, assumed := range a.Fits {
		var err error
		entry := &experiments.Entry{Name: assumed.Name, New: func(known experiments.Known, _ any) (env.Agent, error) {
			p := &byForm{sel: baselines.NewSelector(known.Terms.Costs, known.Terms.Budget), key: make([]float64, len(known.Terms.Costs))}
			for i := range r.q.Log.Names {
				_, sum := r.cat.published(i, first, half)
				p.rate = append(p.rate, sum)
			}
			p.total = assumed.totals(ages, r.length/3600)
			return env.NewAgent(p), nil
		}}
		crawls[k], err = r.play(ctx, w, float64(a.Budget), a.Form, entry, env.LevelModel, nil)
		if err != nil {
			return err
		}
	}
	for k, truth := range a.Fits {
		for _, c := range crawls {
			a.Wrong[k] = append(a.Wrong[k], r.measure(c, w, truth.form).Interest)
		}
		right := a.Wrong[k][k]
		for j := range a.Wrong[k] {
			a.Wrong[k][j] /= right
		}
	}
	return nil
}

// ages is how many ages a byForm tells apart.
const ages = 5000

// byForm ranks by Whittle's index at the age for any form of decay. With F(s)
// what waits after s epochs, which is concave in s, it is
//
//	γ(s) = F(s) − s (F(s+1) − F(s))
//
// and for the exponential that of Theorem 1 of TCNS.
type byForm struct {
	sel         *baselines.Selector
	key         []float64
	rate, total []float64
}

// Select implements env.Policy.
func (p *byForm) Select(dst []int, o *env.Model) []int {
	for i := range p.key {
		s := min(o.Age(i), ages-2)
		p.key[i] = p.rate[i] * (p.total[s] - float64(s)*(p.total[s+1]-p.total[s]))
	}
	return p.sel.Top(dst, p.key)
}

// conclude fills what follows from the runs.
func (a *Answer) conclude() {
	const block = 7 // days
	none := stats.Estimate{Lo: math.NaN(), Hi: math.NaN()}
	boot := stats.New(a.seed)
	a.Gain = none
	for k := range a.Rows {
		a.Rows[k].Interval = none
		if days := a.Rows[k].days; len(days) >= block {
			perHour := make([]float64, len(days))
			for d, v := range days {
				perHour[d] = v / 24
			}
			a.Rows[k].Interval = boot.Blocks(perHour, block)
		}
	}
	if now, learning := a.Rows[0].days, a.Rows[1].days; len(now) >= block {
		a.Gain = boot.RatioBlocks(learning, now, block)
	}
	a.Gain.Value = a.Rows[1].Interest / a.Rows[0].Interest
	a.Gain.Value, a.Gain.Lo, a.Gain.Hi = a.Gain.Value-1, a.Gain.Lo-1, a.Gain.Hi-1

	for k := range a.Budgets {
		a.Budgets[k].Interest /= a.nowAtEnd
	}
	a.Fewer = math.NaN()
	if last := a.Budgets[len(a.Budgets)-1]; last.Interest >= 1 {
		a.Fewer = 1 - a.Budgets[0].Crawls // at least
		for k := len(a.Budgets) - 1; k > 0; k-- {
			hi, lo := a.Budgets[k], a.Budgets[k-1]
			if lo.Interest < 1 {
				a.Fewer = 1 - (lo.Crawls + (hi.Crawls-lo.Crawls)*(1-lo.Interest)/(hi.Interest-lo.Interest))
				break
			}
		}
	}
}
