package experiments

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
	"ephemera/experiments/files"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// follow says what is kept of a run while it goes on. None of it changes what the
// run brings.
type follow struct {
	state  string           // file of the checkpoints of a learner; "" for none
	id     string           // of the run, in its checkpoints
	keeps  bool             // the checkpoint stays, and the last one is of the end of learning
	every  int              // epochs between two of them; 0 for ten seconds
	crawls bool             // keep the last crawls of what was learned
	played func(epochs int) // if not nil, is told how many epochs were played since the last call
}

// followed is a run with what was kept of its parts.
type followed struct {
	Played
	learning, learned part
	stepsPerSecond    float64 // of the learner
}

// part is what is kept of learning, or of what was learned, as data.
type part struct {
	Curve []milestone `json:"curve"`
	Now   milestone   `json:"now"` // after the last epoch
	Days  []float64   `json:"days,omitempty"`
	Day   float64     `json:"day,omitempty"` // of a day that is not over, interest per epoch of a whole one
	// Crawls are epoch and source of the last crawls.
	Crawls [][2]int `json:"crawls,omitempty"`
}

// milestone is how much interest and how many crawls there were up to an epoch,
// and the learner's own figures after it.
type milestone struct {
	Epoch  int       `json:"epoch"`
	Reward float64   `json:"reward"`
	Crawls float64   `json:"crawls"`
	Own    []float64 `json:"own,omitempty"`
}

// Milestones returns the epochs of a curve, over a run of so many: eight in
// each factor of ten, and the last.
func Milestones(epochs int) []int {
	var at []int
	for k := 0; ; k++ {
		n := int(math.Round(math.Pow(10, float64(k)/8)))
		if n >= epochs {
			return append(at, epochs)
		}
		if len(at) == 0 || n > at[len(at)-1] {
			at = append(at, n)
		}
	}
}

// curveEnds returns the epochs at which points of a curve end: the Milestones of
// the run, each change of the world, and from ten epochs after it on the
// Milestones counted from there.
func curveEnds(epochs int, changes []env.Change) []int {
	ends := Milestones(epochs)
	for _, c := range changes {
		if c.At >= epochs {
			break
		}
		ends = append(ends, c.At)
		for _, n := range Milestones(epochs - c.At) {
			if n >= 10 {
				ends = append(ends, c.At+n)
			}
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

// Of what was learned the crawls of the last epochs are kept, but no more than so
// many.
const (
	lastEpochs = 100
	lastCrawls = 20_000
)

// watch returns what fills the part over a run of so many epochs.
func (p *part) watch(now Running, epochs int, crawls bool) Watcher {
	ends := curveEnds(epochs, now.Instance.Changes)
	day := 86400 / now.Terms.Length // epochs
	dated := now.Terms.Length > 0 && day == math.Trunc(day)
	return func(n int, reward float64, crawled []env.Crawled) error {
		p.Now.Epoch = n + 1
		p.Now.Reward += reward
		p.Now.Crawls += float64(len(crawled))
		if dated {
			p.Day += reward / day
			if (n+1)%int(day) == 0 {
				p.Days, p.Day = append(p.Days, p.Day), 0
			}
		}
		if crawls && n >= epochs-lastEpochs && len(p.Crawls)+len(crawled) <= lastCrawls {
			for _, c := range crawled {
				p.Crawls = append(p.Crawls, [2]int{n, c.Source})
			}
		}
		if k := len(p.Curve); k == len(ends) || ends[k] != n+1 {
			return nil
		}
		at := p.Now
		if now.Trainee != nil && !now.Again {
			for _, m := range now.Trainee.Metrics() {
				if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
					return fmt.Errorf("epoch %d: the learner's %s is %v, %w", n, m.Name, m.Value, ErrNotFinite)
				}
				at.Own = append(at.Own, m.Value)
			}
		}
		p.Curve = append(p.Curve, at)
		return nil
	}
}

// means returns the curve as means between its points.
func (p *part) means() (curve []CurvePoint) {
	var last milestone
	for _, now := range p.Curve {
		span := float64(now.Epoch - last.Epoch)
		curve = append(curve, CurvePoint{
			Epoch: now.Epoch, Reward: (now.Reward - last.Reward) / span, Crawls: (now.Crawls - last.Crawls) / span, Own: now.Own,
		})
		last = now
	}
	return curve
}

// reward returns what was earned since the point of the curve before.
func (p *part) reward(k int) float64 {
	if k == 0 {
		return p.Curve[0].Reward
	}
	return p.Curve[k].Reward - p.Curve[k-1].Reward
}

// beside fills in the shares of what exact Whittle earned in the same epochs.
func (r *Record) beside(out, exact *followed) {
	r.Learning.Whittle, r.Learned.Whittle = exact.Learning.Reward, exact.Learned.Reward
	for _, f := range []*Figures{&r.Learning, &r.Learned} {
		f.OfWhittle = result.Ptr(f.Reward / f.Whittle)
	}
	for k := range r.Curve {
		best, before := exact.learning.reward(k), 0
		if k > 0 {
			before = r.Curve[k-1].Epoch
		}
		r.Curve[k].Whittle = best / float64(r.Curve[k].Epoch-before)
		r.Curve[k].OfWhittle = result.Ptr(out.learning.reward(k) / best)
	}
}

// follow performs a run and follows it. With a state file it goes on from the
// checkpoint that is there, writes others while the learner learns, and a last one
// when it has learned or the context is done.
func (c *contest) follow(ctx context.Context, how follow) (*followed, error) {
	out := &followed{}
	epochs := c.at.Limit(c.Steps)
	play := Play{
		Entry: c.entry, Settings: c.settings, Level: c.level, Seed: c.Seed, Epochs: c.Steps, Evaluation: c.Evaluation,
	}
	if how.state != "" && c.entry.Learns() {
		at, err := readCheckpoint(how.state)
		if err != nil {
			return nil, err
		}
		if at != nil && at.ID == how.id {
			play.From, out.learning = &at.Point, at.Part
		}
	}
	var learning *Running // while the learner learns
	play.Watch = func(now Running) Watcher {
		if now.Again {
			learning = nil
			return how.count(out.learned.watch(now, c.at.Limit(cmp.Or(c.Evaluation, c.Steps)), how.crawls))
		}
		see := how.count(out.learning.watch(now, epochs, false))
		if now.Trainee == nil {
			return see
		}
		learning = &now
		due, began, from := how.due(), time.Now(), out.learning.Now.Epoch
		return func(n int, reward float64, crawls []env.Crawled) error {
			err := see(n, reward, crawls)
			last := n+1 == epochs
			if last {
				out.stepsPerSecond = float64(epochs-from) / time.Since(began).Seconds()
			}
			if err != nil || how.state == "" || !(last && how.keeps) && !due(n+1) {
				return err
			}
			return c.save(&now, &out.learning, how)
		}
	}
	var err error
	out.Played, err = c.at.Play(ctx, play)
	if ctx.Err() != nil && learning != nil && how.state != "" {
		err = errors.Join(err, c.save(learning, &out.learning, how))
	}
	if out.learned.Now.Epoch == 0 { // there was no second run
		out.learned = out.learning
	}
	return out, err
}

// count returns a watcher that tells of the epochs, too.
func (how follow) count(see Watcher) Watcher {
	const every = 256 // epochs; a call costs more than a short one
	if how.played == nil {
		return see
	}
	return func(n int, reward float64, crawls []env.Crawled) error {
		if (n+1)%every == 0 {
			how.played(every)
		}
		return see(n, reward, crawls)
	}
}

// due returns what says after which epochs a checkpoint is due: every so many, or
// every ten seconds, and great ones less often, so that they take at most a tenth
// of the time.
func (how follow) due() func(epoch int) bool {
	asked := time.Now() // the last checkpoint
	written := asked
	waiting := false
	return func(epoch int) bool {
		if how.every > 0 {
			return epoch%how.every == 0
		}
		now := time.Now()
		if waiting {
			written, waiting = now, false
		}
		if waiting = checkpointDue(now.Sub(written), written.Sub(asked)); waiting {
			asked = now
		}
		return waiting
	}
}

func checkpointDue(since, took time.Duration) bool { return since >= max(10*time.Second, 9*took) }

// checkpoint is where a run stands between two epochs, as data.
type checkpoint struct {
	ID string `json:"id"`
	Point
	Part part `json:"part"`
}

// readCheckpoint reads the checkpoint that a saved learner has, nil where there is
// no file.
func readCheckpoint(path string) (*checkpoint, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at := &checkpoint{}
	saved, err := learner.Decode(data)
	if err == nil {
		err = json.Unmarshal(saved.Run, at)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	at.Learner = saved.State
	return at, nil
}

// save writes where the run of a learner stands.
func (c *contest) save(now *Running, sofar *part, how follow) error {
	at, err := now.Point()
	if err != nil {
		return err
	}
	config, err := toml.Marshal(struct {
		Algorithm string       `toml:"algorithm"`
		Knowledge env.Level    `toml:"knowledge"`
		Settings  any          `toml:"settings"`
		Instance  env.Instance `toml:"instance"`
	}{c.entry.Name, c.level, c.settings, c.at.Instance})
	if err != nil {
		return err
	}
	run, err := json.Marshal(checkpoint{how.id, *at, *sofar})
	if err != nil {
		return err
	}
	data, err := (&learner.Saved{Config: string(config), Start: now.Terms.Start, Length: now.Terms.Length, State: at.Learner, Run: run}).Encode()
	if err != nil {
		return err
	}
	return files.Put(how.state, data)
}
