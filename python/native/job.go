package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"time"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
)

// Runs are long runs as data: of one policy, or a comparison of several.
type Runs struct {
	Spec
	Compare    bool     `json:"compare"`
	Policies   []Player `json:"policies"`
	Steps      int      `json:"steps"`      // 0 for all that the world has
	Evaluation int      `json:"evaluation"` // of what was learned; 0 for as many
	Seed       uint64   `json:"seed"`
	Seeds      int      `json:"seeds"`
	Workers    int      `json:"workers"` // 0 for one per processor
	Rows       int      `json:"rows"`    // of the curve of one run
}

// Player is an entry of the catalogue, or a guest: a policy in Python.
type Player struct {
	Name     string         `json:"name"`
	Settings map[string]any `json:"settings"`
	Guest    bool           `json:"guest"`
	Updates  bool           `json:"updates"` // the guest is told what crawls bring
}

// Arena tells Python whom its guests will play with.
type Arena struct {
	ID     string    `json:"id"`
	Names  []string  `json:"names"`
	Costs  []float64 `json:"costs"`
	Budget float64   `json:"budget"`
	Level  string    `json:"knowledge"`
}

// Job is a run that goes on by itself. Python takes part in it by Serve.
type Job struct {
	stop    context.CancelFunc
	done    chan struct{}
	result  any // valid when done
	err     error
	desk    desk
	pending bool // Python owes a reply
	timer   *time.Timer
}

// desk is where guests ask.
type desk struct {
	ctx   context.Context
	ask   chan *Request
	reply chan Reply
}

// What a guest asks for.
const (
	Begin = iota // a new run
	Select
	Update
)

// Request is what a guest asks of Python. Its slices are the world's, and stay
// as they are until the reply.
type Request struct {
	Kind   int
	Guest  int // number of the policy
	Epoch  int
	Last   []int
	Mean   []float64 // nil where the level does not show it
	State  []float64
	Crawls []env.Crawled
}

// Items returns the number of items that the crawls brought back.
func (r *Request) Items() (n int) {
	for _, c := range r.Crawls {
		n += len(c.Items)
	}
	return n
}

// Reply names sources to crawl, or gives each a score.
type Reply struct {
	Sources []int64
	Scores  []float64
}

// Start begins a job.
func Start(text []byte) (*Job, *Arena, error) {
	var r Runs
	if err := decode(text, &r); err != nil {
		return nil, nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	scene, level, err := r.scene(ctx)
	if err != nil {
		stop()
		return nil, nil, err
	}
	terms := scene.Instance.Terms()
	j := &Job{stop: stop, done: make(chan struct{}), timer: time.NewTimer(time.Hour)}
	j.desk = desk{ctx, make(chan *Request), make(chan Reply)}
	contenders, err := r.contenders(scene, level, &j.desk)
	if err != nil {
		stop()
		return nil, nil, err
	}
	go func() {
		defer close(j.done)
		defer stop()
		defer func() {
			if p := recover(); p != nil {
				j.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		if r.Compare {
			j.result, j.err = r.compare(ctx, scene, level, contenders)
		} else {
			j.result, j.err = r.run(ctx, scene, level, contenders[0])
		}
	}()
	return j, &Arena{scene.Instance.ID, terms.Names, terms.Costs, terms.Budget, level.String()}, nil
}

// contenders finds the players.
func (r *Runs) contenders(scene experiments.Scene, level env.Level, d *desk) ([]experiments.Contender, error) {
	if len(r.Policies) == 0 || r.Steps < 0 || r.Evaluation < 0 || r.Rows < 0 || r.Compare && r.Seeds < 1 {
		return nil, fmt.Errorf("%d policies, %d steps, %d of evaluation, %d seeds, %d rows; at least one policy and one seed are needed, and nothing below 0", len(r.Policies), r.Steps, r.Evaluation, r.Seeds, r.Rows)
	}
	if r.Steps == 0 && scene.Epochs == 0 {
		return nil, errors.New("the world does not end; the number of steps is needed")
	}
	names := map[string]bool{}
	all := make([]experiments.Contender, len(r.Policies))
	for k, p := range r.Policies {
		if names[p.Name] {
			return nil, fmt.Errorf("policy %q is named twice", p.Name)
		}
		names[p.Name] = true
		if p.Guest {
			all[k].Entry = &experiments.Entry{Name: p.Name, Levels: []env.Level{level}, New: newGuest(d, k, p.Updates)}
			continue
		}
		e, err := experiments.Find(p.Name)
		if err != nil {
			return nil, err
		}
		if why := e.WhyNot(scene, level); why != "" {
			return nil, fmt.Errorf("%q does not apply to %s with knowledge %s: %s", p.Name, scene.Instance.ID, level, why)
		}
		all[k].Entry = e
		if len(p.Settings) > 0 && e.Settings == nil {
			return nil, fmt.Errorf("%q has no settings", p.Name)
		}
		if e.Settings != nil {
			if all[k].Settings, err = e.Configure(level, p.Settings); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// Earned is what a run brought, per epoch.
type Earned struct {
	Epochs int     `json:"epochs"`
	Reward float64 `json:"reward"`
	Crawls float64 `json:"crawls"`
	Cost   float64 `json:"cost"`
}

func earned(o experiments.Outcome) Earned { return Earned{o.Epochs, o.Reward, o.Crawls, o.Cost} }

// Ran is the outcome of one run.
type Ran struct {
	Learning Earned       `json:"learning"`
	Learned  Earned       `json:"learned"`
	Learns   bool         `json:"learns"`
	Curve    [][3]float64 `json:"curve"` // epoch, and mean reward and crawls since the row before
}

func (r *Runs) run(ctx context.Context, scene experiments.Scene, level env.Level, c experiments.Contender) (any, error) {
	epochs := scene.Limit(r.Steps)
	rows := min(r.Rows, epochs)
	out := Ran{Learns: c.Entry.Learns(), Curve: [][3]float64{}}
	var n, reward, crawls float64
	played, err := scene.Play(ctx, experiments.Play{
		Entry: c.Entry, Settings: c.Settings, Level: level, Seed: r.Seed, Epochs: r.Steps, Evaluation: r.Evaluation,
		Watch: func(run experiments.Running) experiments.Watcher {
			return func(epoch int, brought float64, got []env.Crawled) error {
				if run.Again || rows == 0 {
					return nil
				}
				n, reward, crawls = n+1, reward+brought, crawls+float64(len(got))
				// Row k ends at the epoch ⌈k epochs/rows⌉.
				if k := len(out.Curve) + 1; (epoch+1)*rows >= k*epochs {
					out.Curve = append(out.Curve, [3]float64{float64(epoch + 1), reward / n, crawls / n})
					n, reward, crawls = 0, 0, 0
				}
				return nil
			}
		},
	})
	out.Learning, out.Learned = earned(played.Learning), earned(played.Learned)
	return out, err
}

// Comparison is a comparison as data.
type Comparison struct {
	Report result.Report `json:"report"`
	Table  string        `json:"table"`
	Runs   []Row         `json:"runs"`
}

// Row is one run of a comparison.
type Row struct {
	Policy   string `json:"policy"`
	Instance string `json:"instance"`
	Seed     uint64 `json:"seed"`
	Earned
}

func (r *Runs) compare(ctx context.Context, scene experiments.Scene, level env.Level, contenders []experiments.Contender) (any, error) {
	workers := r.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	for _, p := range r.Policies {
		if p.Guest {
			workers = 1 // a guest is one object
		}
	}
	compared, err := experiments.Comparison{
		Scenes: []experiments.Scene{scene}, Level: level, Contenders: contenders,
		Epochs: r.Steps, Seeds: r.Seeds, Seed: r.Seed, Workers: workers,
	}.Run(ctx)
	if err != nil {
		return nil, err
	}
	var table bytes.Buffer
	if err := compared.Report.Write(&table, result.Text); err != nil {
		return nil, err
	}
	for k := range compared.Report.Results {
		row := &compared.Report.Results[k]
		for _, v := range []**float64{&row.Lo, &row.Hi, &row.OfWhittle, &row.OfBound, &row.Diff, &row.DiffLo, &row.DiffHi, &row.Worst} {
			if *v != nil && math.IsNaN(**v) {
				*v = nil
			}
		}
	}
	runs := make([]Row, len(compared.Runs))
	for k, r := range compared.Runs {
		runs[k] = Row{r.Policy, r.Instance, r.Seed, earned(r.Outcome)}
	}
	return Comparison{compared.Report, table.String(), runs}, nil
}

// newGuest returns the constructor of guest number k.
func newGuest(d *desk, k int, updates bool) func(experiments.Known, any) (env.Agent, error) {
	return func(known experiments.Known, _ any) (env.Agent, error) {
		g := guest{desk: d, number: k, updates: updates, terms: known.Terms}
		d.call(&Request{Kind: Begin, Guest: k})
		switch known.Level {
		case env.LevelOnline:
			return env.NewAgent[env.Online](onlineGuest{&g}), nil
		case env.LevelModel:
			return env.NewAgent[env.Model](modelGuest{&g}), nil
		}
		return env.NewAgent[env.Observed](observedGuest{&g}), nil
	}
}

// call hands a request to Python and waits for the reply; when the job is
// stopped it is empty.
func (d *desk) call(r *Request) Reply {
	select {
	case d.ask <- r:
	case <-d.ctx.Done():
		return Reply{}
	}
	select {
	case a := <-d.reply:
		return a
	case <-d.ctx.Done():
		return Reply{}
	}
}

// guest is a policy in Python, as the loop holds it.
type guest struct {
	*desk
	number  int
	updates bool
	terms   env.Terms
	request Request
	top     chooser
}

func (g *guest) choose(dst []int, o *env.Online, mean, state []float64) []int {
	g.request = Request{Kind: Select, Guest: g.number, Epoch: o.Epoch, Last: o.Last, Mean: mean, State: state}
	a := g.call(&g.request)
	if a.Scores != nil {
		return g.top.choose(dst, g.terms, a.Scores)
	}
	for _, i := range a.Sources {
		dst = append(dst, int(i))
	}
	return dst
}

func (g *guest) tell(crawls []env.Crawled, o *env.Online, mean, state []float64) {
	if !g.updates {
		return
	}
	g.request = Request{Kind: Update, Guest: g.number, Epoch: o.Epoch, Last: o.Last, Mean: mean, State: state, Crawls: crawls}
	g.call(&g.request)
}

// A guest of each level of knowledge.
type (
	onlineGuest   struct{ *guest }
	modelGuest    struct{ *guest }
	observedGuest struct{ *guest }
)

func (g onlineGuest) Select(dst []int, o *env.Online) []int { return g.choose(dst, o, nil, nil) }
func (g onlineGuest) Update(crawls []env.Crawled, o *env.Online) {
	g.tell(crawls, o, nil, nil)
}

func (g modelGuest) Select(dst []int, o *env.Model) []int {
	return g.choose(dst, &o.Online, o.Mean, nil)
}
func (g modelGuest) Update(crawls []env.Crawled, o *env.Model) {
	g.tell(crawls, &o.Online, o.Mean, nil)
}

func (g observedGuest) Select(dst []int, o *env.Observed) []int {
	return g.choose(dst, &o.Online, o.Mean, o.State)
}
func (g observedGuest) Update(crawls []env.Crawled, o *env.Observed) {
	g.tell(crawls, &o.Online, o.Mean, o.State)
}

// Serve hands in the reply to the request that it returned last, and waits for
// the next, at most for the given time. It returns nil and false when that has
// passed, nil and true when the job is done.
func (j *Job) Serve(reply Reply, wait time.Duration) (*Request, bool) {
	if j.pending {
		j.pending = false
		select {
		case j.desk.reply <- reply:
		case <-j.done:
		}
	}
	j.timer.Reset(wait)
	select {
	case r := <-j.desk.ask:
		j.pending = true
		return r, false
	case <-j.done:
		return nil, true
	case <-j.timer.C:
		return nil, false
	}
}

// Result returns what a job that is done has brought.
func (j *Job) Result() (any, error) { return j.result, j.err }

// Close stops the job, whose goroutine ends as soon as it looks.
func (j *Job) Close() error {
	j.stop()
	return nil
}
