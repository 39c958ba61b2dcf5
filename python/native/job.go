package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
)

// runs are long runs as data: of one policy, or a comparison of several.
type runs struct {
	spec
	Compare    bool
	Policies   []player
	Steps      int // 0 for all that the world has
	Evaluation int // of what was learned; 0 for as many
	Seed       uint64
	Seeds      int
	Workers    int // 0 for one per processor
	Rows       int // of the curve of one run
}

// job is a run that goes on by itself. Python takes part in it by serve.
type job struct {
	ctx    context.Context
	stop   context.CancelFunc
	ask    chan *request
	reply  chan []float64 // a form and its numbers
	done   chan struct{}
	result any // valid when done
	err    error
	now    *request // that Python is at work on, or nil
}

// What a guest asks for.
const (
	begin = iota // a new run
	choose
	learn
)

// request is what a guest asks of Python. Its slices are the world's, and stay
// as they are until the reply.
type request struct {
	Kind   int
	Guest  int // number of the policy
	Epoch  int
	Last   []int
	Mean   []float64 // nil where the level does not show it
	State  []float64
	Crawls []env.Crawled
}

// Append appends the request as numbers: kind, guest and epoch, whether means
// and states follow, the numbers of crawls and of items; then ages, means and
// states of all sources; of each crawl the source, the epochs since its last,
// the interest and the number of items; age and interest of each item.
func (r *request) Append(to []float64) []float64 {
	items := 0
	for _, c := range r.Crawls {
		items += len(c.Items)
	}
	seen := map[bool]float64{true: 1}
	to = append(to, float64(r.Kind), float64(r.Guest), float64(r.Epoch), seen[r.Mean != nil], seen[r.State != nil], float64(len(r.Crawls)), float64(items))
	for _, last := range r.Last {
		to = append(to, float64(r.Epoch-last))
	}
	to = append(append(to, r.Mean...), r.State...)
	for _, c := range r.Crawls {
		to = append(to, float64(c.Source), float64(c.Age), c.Interest, float64(len(c.Items)))
	}
	for _, c := range r.Crawls {
		for _, x := range c.Items {
			to = append(to, x.Age, x.Interest)
		}
	}
	return to
}

// start begins a job, and tells whom its guests will play with.
func start(text []byte) (*job, any, error) {
	r := runs{spec: usual()}
	if err := decode(text, &r); err != nil {
		return nil, nil, err
	}
	j := &job{ask: make(chan *request), reply: make(chan []float64), done: make(chan struct{})}
	j.ctx, j.stop = context.WithCancel(context.Background())
	scene, err := r.scene(j.ctx)
	var contenders []contender
	if err == nil {
		contenders, err = r.contenders(scene, j)
	}
	if err != nil {
		j.stop()
		return nil, nil, err
	}
	go func() {
		defer close(j.done)
		defer j.stop()
		defer func() {
			if p := recover(); p != nil {
				j.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		if r.Compare {
			j.result, j.err = r.compare(j.ctx, scene, contenders)
		} else {
			j.result, j.err = r.run(j.ctx, scene, contenders[0])
		}
	}()
	t := scene.Instance.Terms()
	return j, map[string]any{"id": scene.Instance.ID, "names": t.Names, "costs": t.Costs, "budget": t.Budget, "knowledge": r.Knowledge}, nil
}

// contenders finds the players.
func (r *runs) contenders(scene experiments.Scene, j *job) ([]contender, error) {
	if len(r.Policies) == 0 || r.Steps < 0 || r.Evaluation < 0 || r.Rows < 0 || r.Compare && r.Seeds < 1 {
		return nil, fmt.Errorf("%d policies, %d steps, %d of evaluation, %d seeds, %d rows; at least one policy and one seed are needed, and nothing below 0", len(r.Policies), r.Steps, r.Evaluation, r.Seeds, r.Rows)
	}
	if r.Steps == 0 && scene.Epochs == 0 {
		return nil, errors.New("the world does not end; the number of steps is needed")
	}
	all := make([]contender, len(r.Policies))
	for k, p := range r.Policies {
		if slices.ContainsFunc(r.Policies[:k], func(other player) bool { return other.row() == p.row() }) {
			return nil, fmt.Errorf("policy %q is named twice", p.row())
		}
		var err error
		if p.Guest {
			r.Workers = 1 // a guest is one object
			all[k].entry = &experiments.Entry{Name: p.Name, Levels: []env.Level{r.Knowledge}, New: newGuest(j, k, p.Updates)}
		} else if all[k], err = p.contender(scene, r.Knowledge); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// run answers with the outcome of one run. A row of its curve is the epoch, and
// mean reward and crawls since the row before.
func (r *runs) run(ctx context.Context, scene experiments.Scene, c contender) (any, error) {
	epochs := scene.Limit(r.Steps)
	rows := min(r.Rows, epochs)
	curve := [][3]float64{}
	var n, reward, crawls float64
	played, err := scene.Play(ctx, experiments.Play{
		Entry: c.entry, Settings: c.settings, Level: r.Knowledge, Seed: r.Seed, Epochs: r.Steps, Evaluation: r.Evaluation,
		Watch: func(run experiments.Running) experiments.Watcher {
			return func(epoch int, brought float64, got []env.Crawled) error {
				if run.Again || rows == 0 {
					return nil
				}
				n, reward, crawls = n+1, reward+brought, crawls+float64(len(got))
				// Row k ends at the epoch ⌈k epochs/rows⌉.
				if k := len(curve) + 1; (epoch+1)*rows >= k*epochs {
					curve = append(curve, [3]float64{float64(epoch + 1), reward / n, crawls / n})
					n, reward, crawls = 0, 0, 0
				}
				return nil
			}
		},
	})
	return map[string]any{"learning": played.Learning, "learned": played.Learned, "learns": c.entry.Learns(), "curve": curve}, err
}

// compare answers with a comparison: its report, the table and all runs.
func (r *runs) compare(ctx context.Context, scene experiments.Scene, contenders []contender) (any, error) {
	all := make([]experiments.Contender, len(contenders))
	for k, c := range contenders {
		all[k] = experiments.Contender{Name: c.entry.Name, Learns: c.entry.Learns(), Records: make([]*experiments.Record, r.Seeds)}
	}
	err := experiments.Each(ctx, len(all)*r.Seeds, cmp.Or(r.Workers, runtime.GOMAXPROCS(0)), nil, nil, func(ctx context.Context, i int) (err error) {
		k, n := i/r.Seeds, i%r.Seeds
		c := contenders[k]
		all[k].Records[n], err = scene.Record(ctx, experiments.Play{
			Entry: c.entry, Settings: c.settings, Level: r.Knowledge, Seed: r.Seed + uint64(n), Epochs: r.Steps,
		})
		if err != nil {
			err = fmt.Errorf("%s on %s, seed %d: %w", c.entry.Name, scene.Instance.ID, r.Seed+uint64(n), err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	report := experiments.Compare(all, r.Knowledge, r.Seeds, r.Seed)
	var table strings.Builder
	err = report.Write(&table, result.Text)
	return map[string]any{"report": report, "table": table.String(), "runs": experiments.RunRows(all)}, err
}

// guest is a policy in Python, as the loop holds it. It passes on no more than
// its level of knowledge shows.
type guest struct {
	job     *job
	number  int
	updates bool
	level   env.Level
	top     *baselines.Selector
}

// newGuest returns the constructor of guest number k.
func newGuest(j *job, k int, updates bool) func(experiments.Known, any) (env.Agent, error) {
	return func(known experiments.Known, _ any) (env.Agent, error) {
		j.call(&request{Kind: begin, Guest: k})
		return env.NewAgent[env.Observed](&guest{j, k, updates, known.Level, baselines.NewSelector(known.Terms.Costs, known.Terms.Budget)}), nil
	}
}

func (g *guest) Select(dst []int, o *env.Observed) []int {
	a := g.call(choose, o, nil)
	switch {
	case len(a) == 0: // the job is stopped
	case a[0] == scores:
		return g.top.Top(dst, a[1:])
	default:
		for _, i := range a[1:] {
			dst = append(dst, int(i))
		}
	}
	return dst
}

func (g *guest) Update(crawls []env.Crawled, next *env.Observed) {
	if g.updates {
		g.call(learn, next, crawls)
	}
}

func (g *guest) call(kind int, o *env.Observed, crawls []env.Crawled) []float64 {
	r := &request{Kind: kind, Guest: g.number, Epoch: o.Epoch, Last: o.Last, Crawls: crawls}
	if g.level != env.LevelOnline {
		r.Mean = o.Mean
	}
	if g.level == env.LevelObserved {
		r.State = o.State
	}
	return g.job.call(r)
}

// call hands a request to Python and waits for the reply; when the job is
// stopped there is none.
func (j *job) call(r *request) []float64 {
	select {
	case j.ask <- r:
	case <-j.ctx.Done():
		return nil
	}
	select {
	case a := <-j.reply:
		return a
	case <-j.ctx.Done():
		return nil
	}
}

// Forms of the numbers that Python hands in; the numbers stand behind the form.
const (
	sources = iota // to crawl
	scores         // of all sources
	again          // the same request, with more room
)

// answer hands in the reply to the request before, and appends the next. Where
// there is none yet, it appends nothing and answers nothing; when the job is done,
// it answers with the result.
func (j *job) answer(in, to []float64) ([]float64, any, error) {
	if len(in) > 0 && in[0] == again {
		return j.now.Append(to), nil, nil
	}
	const wait = 100 * time.Millisecond        // then Python looks for signals
	r, done := j.serve(slices.Clone(in), wait) // the guest may look for longer than the call lasts
	switch {
	case r != nil:
		return r.Append(to), nil, nil
	case done:
		return nil, j.result, j.err
	}
	return nil, nil, nil
}

// serve hands in the reply to the request that it returned last, and waits for
// the next, at most for the given time. It returns nil and false when that has
// passed, nil and true when the job is done.
func (j *job) serve(reply []float64, wait time.Duration) (*request, bool) {
	if j.now != nil {
		j.now = nil
		select {
		case j.reply <- reply:
		case <-j.done:
		}
	}
	select {
	case j.now = <-j.ask:
		return j.now, false
	case <-j.done:
		return nil, true
	case <-time.After(wait):
		return nil, false
	}
}
