package experiments

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"golang.org/x/sync/errgroup"

	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/internal/files"
	"ephemera/learner"
)

// Batch says how runs are performed. Nothing of it changes what they bring.
type Batch struct {
	Dir      string // keeps a record of each run in its directory runs; "" keeps none
	Workers  int    // runs at once, 1 or more
	Shard    Shard  // the part of the runs that this process performs; the zero value is all
	ReadOnly bool   // performs none
	// Progress, if not nil, is given how many of the runs to be performed are done.
	Progress func(done, total int)
	// Watch, if not nil, returns what watches a run, as that of a [Play].
	Watch func(l learner.Learner) Watcher

	// Timing, if not empty, is the file that says how fast the first learner learned of
	// those whose runs are performed now.
	Timing string

	// Saved, if not empty, is the file in which the learner of the first run is saved
	// when it has learned.
	Saved string
}

// Performed is what runs bring, in their order.
type Performed[R any] struct {
	Names   []string // of their files
	Records []*R     // nil where a run failed or is another shard's and not done
	Errors  []error  // of the runs that failed
	Ran     int      // runs that were performed now
	Unsaved error    // why the learner of the first run could not be saved, if that was wanted
}

// PerformAll performs the runs of a shard that have no record, and returns the
// records of all that are done. A run that fails does not stop the others.
func (e *Engine) PerformAll(ctx context.Context, jobs []*Job, b Batch) (*Performed[Record], error) {
	names := make([]string, len(jobs)) // of their files
	for i, j := range jobs {
		if b.Dir == "" {
			break // there are none
		}
		hash, err := e.Hash(j)
		if err != nil {
			return nil, err
		}
		names[i] = keptName(hash, j.Seed)
	}
	if b.Saved != "" && !holdsRun(b.Saved, names[0]) {
		os.Remove(keptAt(b.Dir, names[0])) // what it learned is not there
	}
	var timed sync.Once
	var unsaved error
	out, err := PerformMissing(ctx, b, names, func(ctx context.Context, i int) (*Record, error) {
		c := jobs[i]
		rec, err := e.perform(ctx, c, b.Watch)
		if err == nil && b.Timing != "" && rec.Trainee != nil {
			timed.Do(func() {
				err = files.Put(b.Timing, fmt.Appendf(nil, "{\"steps_per_second\": %.0f}\n", rec.Speed))
			})
		}
		in := fmt.Sprintf("%s on %s, seed %d", c.Algorithm(), c.Scene.Instance.ID, c.Seed)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", in, err)
		case i > 0:
			rec.Trainee = nil // many would fill the memory
		case b.Saved != "":
			if err := c.saveTrainee(rec.Trainee, b.Saved, names[i]); err != nil {
				unsaved = fmt.Errorf("%s: the state of the learner cannot be saved: %w", in, err)
			}
		}
		return rec, nil
	})
	if err != nil {
		return nil, err
	}
	out.Unsaved = unsaved
	return out, nil
}

// perform performs a run: it learns, then measures what was learned and exact
// Whittle in the same world from its beginning. A policy that does not learn is
// measured alone. It ends with the context's error when that is done.
func (e *Engine) perform(
	ctx context.Context, c *Job, watch func(l learner.Learner) Watcher,
) (_ *Record, err error) {
	defer caught(&err)
	exact, err := e.exact(ctx, c, watch)
	if err != nil {
		return nil, err
	}
	own := exact
	if c.Entry.Name != "whittle" || c.Level == env.LevelOnline {
		p := c.play()
		p.Watch = watch
		if own, err = c.Scene.Play(ctx, p); err != nil {
			return nil, err
		}
	}
	rec := *own
	rec.Run, rec.Curve = c.Run, slices.Clone(own.Curve)
	rec.addRatios(exact)
	return &rec, nil
}

// exact returns the run of exact Whittle that a run is compared with. In worlds
// that the seed does not change, one run serves all seeds.
func (e *Engine) exact(ctx context.Context, c *Job, watch func(l learner.Learner) Watcher) (*Record, error) {
	whittle, err := Find("whittle")
	if err != nil {
		return nil, err
	}
	p := Play{Entry: whittle, Level: c.Level, Epochs: c.Steps, Evaluation: c.Evaluation, Watch: watch}
	if p.Level == env.LevelOnline {
		p.Level = env.LevelModel // what Whittle knows that the learner does not
	}
	if c.Scene.Seeded {
		p.Seed = c.Seed
	}
	key := fmt.Sprintf("%s %s %d %d %d", c.Scene.key, p.Level, p.Seed, p.Epochs, p.Evaluation)
	return e.whittle.get(key, func() (*Record, error) { return c.Scene.Play(ctx, p) })
}

// play returns the run as its scene plays it.
func (c *Job) play() Play {
	return Play{
		Entry: c.Entry, Settings: c.Settings, Level: c.Level,
		Seed: c.Seed, Epochs: c.Steps, Evaluation: c.Evaluation,
	}
}

// addRatios fills in the shares of what exact Whittle earned in the same epochs.
func (r *Record) addRatios(exact *Record) {
	r.Learning.Whittle, r.Learned.Whittle = exact.Learning.Reward, exact.Learned.Reward
	for _, f := range []*Figures{&r.Learning, &r.Learned} {
		f.OfWhittle = result.RatioOf(result.Share(f.Reward, f.Whittle))
	}
	for k := range r.Curve {
		p := &r.Curve[k]
		p.Whittle = exact.Curve[k].Reward
		p.OfWhittle = result.RatioOf(result.Share(p.Reward, p.Whittle))
	}
}

// Recorded returns the record of a run that was played elsewhere, in the world of the
// scene under the run's seed: what was earned over its epochs, and what, over those of
// the evaluation, in the scene that this one becomes. Who is the name of the policy.
func (e *Engine) Recorded(ctx context.Context, c *Job, who string, learning, learned *Account) (*Record, error) {
	exact, err := e.exact(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	rec := c.Scene.record(c.Level, c.Steps, c.Evaluation)
	rec.Run = c.Run
	rec.Run.Learner = map[string]any{"algorithm": who}
	rec.Curve = slices.Clone(learning.curve)
	if rec.Learning, err = learning.figures(rec.Bound); err != nil {
		return nil, err
	}
	if rec.Learned, err = learned.figures(rec.Bound); err != nil {
		return nil, err
	}
	rec.addRatios(exact)
	return rec, nil
}

// Build builds the learner or policy as a run would, for a program that crawls by
// itself under those terms. The learner is nil where nothing learns.
func (c *Job) Build(t env.Terms) (env.Agent, learner.Learner, error) {
	return c.Scene.build(c.play(), t)
}

// SavedConfig returns what [learner.Saved] says of the learner of the run.
func (c *Job) SavedConfig() (string, error) {
	text, err := toml.Marshal(struct {
		Algorithm string       `toml:"algorithm"`
		Knowledge env.Level    `toml:"knowledge"`
		Settings  any          `toml:"settings"`
		Instance  env.Instance `toml:"instance"`
	}{c.Entry.Name, c.Level, c.Settings, c.Scene.Instance})
	return string(text), err
}

// saveTrainee writes what a run has learned to a file, for [learner.Load]. The file
// names the run.
func (c *Job) saveTrainee(t learner.Learner, file, run string) error {
	config, err := c.SavedConfig()
	if err != nil {
		return err
	}
	world, err := c.Scene.Open(c.Seed, c.Level, true)
	if err != nil {
		return err
	}
	terms := world.Terms()
	name, err := json.Marshal(run)
	if err != nil {
		return err
	}
	state, err := json.Marshal(t.State())
	if err != nil {
		return err
	}
	saved := &learner.Saved{
		Config: config, Start: terms.Start, Length: terms.Length, Objective: terms.Objective, State: state, Run: name,
	}
	data, err := saved.Encode()
	if err != nil {
		return err
	}
	return files.Put(file, data)
}

// holdsRun reports whether the learner in a file is that of the run.
func holdsRun(file, run string) bool {
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	saved, err := learner.Decode(data)
	var name string
	return err == nil && json.Unmarshal(saved.Run, &name) == nil && name == run
}

// Hash names a job but for its seed: it is that of all settings, of the version of the learner or
// policy, and of what the files hold that they name; of a recording as it was read, since that
// may be a pipe.
func (e *Engine) Hash(c *Job) (string, error) {
	r := c.Run
	r.Seed = 0
	settings, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(settings)
	if c.Entry.Version != nil {
		fmt.Fprintf(h, "version %d", c.Entry.Version(c.Level))
	}
	h.Write(c.Scene.sum)
	var files []string
	if dir, ok := strings.CutPrefix(r.Algorithm(), SavedPrefix); ok {
		files = append(files, filepath.Join(dir, learner.StateFile))
	}
	for _, name := range []string{r.Instance.Name, r.Instance.Believe} {
		files = append(files, env.FileOf(name))
	}
	for _, name := range slices.DeleteFunc(files, func(name string) bool { return name == "" }) {
		sum, err := e.sums.get(name, func() ([sha256.Size]byte, error) {
			data, err := os.ReadFile(name)
			return sha256.Sum256(data), err
		})
		if err != nil {
			return "", err
		}
		h.Write(sum[:])
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

// keptName names the file of something that is kept: the hash of its settings, and
// its seed.
func keptName(hash string, seed uint64) string { return fmt.Sprintf("%s-%d", hash, seed) }

// keptAt is where a directory of results keeps the file of that name: one for each
// run that is done.
func keptAt(dir, name string) string { return filepath.Join(dir, "runs", name+".json") }

// PerformMissing performs what is missing of a shard and keeps each as a file of its
// name. What failed does not stop the others. Something is done when its file is there
// and can be read, so that several processes may work on one directory at once: they
// write the same bytes.
func PerformMissing[R any](
	ctx context.Context, b Batch, names []string, perform func(ctx context.Context, i int) (*R, error),
) (*Performed[R], error) {
	out := &Performed[R]{Names: names, Records: make([]*R, len(names)), Errors: make([]error, len(names))}
	read := func(i int) {
		if b.Dir != "" && out.Errors[i] == nil && out.Records[i] == nil {
			out.Records[i], _ = files.ReadJSON[R](keptAt(b.Dir, names[i]))
		}
	}
	var todo []int
	for i := range names {
		if read(i); out.Records[i] == nil && !b.ReadOnly && b.Shard.has(i) {
			todo = append(todo, i)
		}
	}
	var mu sync.Mutex
	err := Each(ctx, len(todo), b.Workers, b.Progress, func(ctx context.Context, k int) error {
		i := todo[k]
		x, err := perform(ctx, i)
		if err != nil && ctx.Err() != nil { // it did not fail
			return err
		}
		if err == nil && b.Dir != "" {
			data, err := json.Marshal(x)
			if err != nil {
				return err
			}
			if err := files.Put(keptAt(b.Dir, names[i]), append(data, '\n')); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if out.Records[i], out.Errors[i] = x, err; err == nil {
			out.Ran++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range names {
		read(i) // what other processes did meanwhile
	}
	if b.Dir != "" && !b.ReadOnly {
		err = files.Tidy(filepath.Dir(keptAt(b.Dir, "")))
	}
	return out, err
}

// Each calls f for the numbers from 0 to n−1, at most workers at once, until one
// fails. A panic is an error. progress, if not nil, is given how many are done.
func Each(
	ctx context.Context, n, workers int, progress func(done, total int), f func(ctx context.Context, i int) error,
) error {
	var mu sync.Mutex
	done := 0
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i := range n {
		if inner.Err() != nil {
			break
		}
		g.Go(func() (err error) {
			defer caught(&err)
			if err := f(inner, i); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if done++; progress != nil {
				progress(done, n)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// caught, when deferred, makes a panic an error that says where: the innermost calls, a line each.
func caught(err *error) {
	p := recover()
	if p == nil {
		return
	}
	text := fmt.Sprintf("panic: %v", p)
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for more, left := true, 8; more && left > 0; {
		var f runtime.Frame
		if f, more = frames.Next(); !strings.HasPrefix(f.Function, "runtime.") {
			text += fmt.Sprintf("\n%s at %s:%d", f.Function, f.File, f.Line)
			left--
		}
	}
	*err = errors.New(text)
}

// Shard is one part of the work: the runs whose number leaves the remainder
// Index when divided by Count. The zero value is all of the work.
type Shard struct{ Index, Count int }

// IsAll reports whether it is all of the work.
func (s Shard) IsAll() bool { return s.Count <= 1 }

func (s Shard) has(i int) bool { return s.IsAll() || i%s.Count == s.Index }

// ParseShard reads i/n with 0 ≤ i < n.
func ParseShard(text string) (Shard, error) {
	var s Shard
	if _, err := fmt.Sscanf(text+"\n", "%d/%d\n", &s.Index, &s.Count); err != nil || s.Index < 0 || s.Index >= s.Count {
		return Shard{}, fmt.Errorf("shard is %q; allowed is i/n with 0 ≤ i < n, such as 0/8", text)
	}
	return s, nil
}
