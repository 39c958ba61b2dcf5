package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
	"ephemera/experiments/files"
	"ephemera/learner"
)

// checkpoints say where a learner is saved while it learns. None of it changes what
// the run brings.
type checkpoints struct {
	file string
	id   string // of the run
	run  *Resolved
}

// checkpoint is where the run of a learner stands between two epochs, as data. The
// world adds no more to it than when each source was crawled last: what waits at a
// source depends on that and the seed alone.
type checkpoint struct {
	ID      string          `json:"id"` // of the run
	Epoch   int             `json:"epoch"`
	Last    []int           `json:"last"` // epoch of each source's last crawl; −1 before the first
	Part    part            `json:"part"`
	Learner json.RawMessage `json:"-"`
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

// learn has a learner learn from its checkpoint on, if there is one, as far as the
// given epoch. It is saved every ten seconds, at the end, and when ctx ends it.
func (c *checkpoints) learn(ctx context.Context, run *playing, epochs int) error {
	if err := c.goOn(ctx, run, epochs); err != nil || run.Sums.Epochs >= epochs {
		return err
	}
	next := time.Now().Add(pause(0))
	err := run.playEpochs(ctx, epochs, func(int, float64, []env.Crawled) error {
		began := time.Now()
		if began.Before(next) {
			return nil
		}
		err := c.save(run)
		next = time.Now().Add(pause(time.Since(began)))
		return err
	})
	if err == nil || ctx.Err() != nil {
		err = errors.Join(err, c.save(run))
	}
	return err
}

// goOn takes a run that has just begun to its checkpoint, if there is one. The world
// is taken there by crawls of each source at the epoch of its last crawl, and not
// before; of a run that has ended it is not needed.
func (c *checkpoints) goOn(ctx context.Context, run *playing, epochs int) error {
	at, err := readCheckpoint(c.file)
	if err != nil || at == nil || at.ID != c.id {
		return err
	}
	if err := run.metrics.SetState(at.Learner); err != nil {
		return fmt.Errorf("state of the learner: %w", err)
	}
	if run.part = at.Part; run.Sums.Epochs >= epochs {
		return nil
	}
	crawls := map[int][]int{} // by epoch
	for i, n := range at.Last {
		crawls[n] = append(crawls[n], i)
	}
	for n := range at.Epoch {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := run.world.Step(crawls[n]); err != nil {
			return err
		}
	}
	return nil
}

// pause returns how long after a checkpoint that took so long the next one is due:
// ten seconds, and longer if it were to take more than a tenth of the time.
func pause(took time.Duration) time.Duration { return max(10*time.Second, 9*took) }

// save writes where the run stands.
func (c *checkpoints) save(run *playing) error {
	state, err := json.Marshal(run.metrics.State())
	if err != nil {
		return fmt.Errorf("state of the learner: %w", err)
	}
	p := c.run.play
	config, err := toml.Marshal(struct {
		Algorithm string       `toml:"algorithm"`
		Knowledge env.Level    `toml:"knowledge"`
		Settings  any          `toml:"settings"`
		Instance  env.Instance `toml:"instance"`
	}{p.Entry.Name, p.Level, p.Settings, c.run.at.Instance})
	if err != nil {
		return err
	}
	v := run.world.View()
	at, err := json.Marshal(checkpoint{ID: c.id, Epoch: v.Epoch, Last: slices.Clone(v.Last), Part: run.part})
	if err != nil {
		return err
	}
	terms := run.world.Terms()
	data, err := (&learner.Saved{Config: string(config), Start: terms.Start, Length: terms.Length, State: state, Run: at}).Encode()
	if err != nil {
		return err
	}
	return files.Put(c.file, data)
}
