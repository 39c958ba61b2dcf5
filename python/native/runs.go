package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
)

// runSettings are runs as data: of some policies, each under some seeds.
type runSettings struct {
	spec
	Policies   []player
	Steps      int // 0 for all that the world has
	Evaluation int // of what was learned; 0 for as many
	Seed       uint64
	Seeds      int
	Workers    int // 0 for one per processor
}

// job performs runs beside Python, which looks for signals while it waits.
type job struct {
	stop    context.CancelFunc
	done    chan struct{}
	records [][]*experiments.Record // of each policy, by seed
	err     error
}

// startRuns begins a job.
func startRuns(text []byte) (*job, error) {
	s := runSettings{spec: usual()}
	if err := decode(text, &s); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	scenes, entries, err := s.plays(ctx)
	if err != nil {
		stop()
		return nil, err
	}
	j := &job{stop: stop, done: make(chan struct{}), records: make([][]*experiments.Record, len(entries))}
	for k := range j.records {
		j.records[k] = make([]*experiments.Record, s.Seeds)
	}
	go func() {
		defer close(j.done)
		defer stop()
		j.err = experiments.Each(ctx, len(entries)*s.Seeds, cmp.Or(s.Workers, runtime.GOMAXPROCS(0)), nil, func(ctx context.Context, i int) (err error) {
			p := entries[i/s.Seeds]
			p.Seed = s.Seed + uint64(i%s.Seeds)
			j.records[i/s.Seeds][i%s.Seeds], err = scenes[i%len(scenes)].Play(ctx, p)
			return err
		})
	}()
	return j, nil
}

// plays opens the scene, or one for each seed where these have instances of their
// own, finds the policies and reads their settings.
func (s *runSettings) plays(ctx context.Context) (scenes []experiments.Scene, all []experiments.Play, err error) {
	if s.Steps < 0 || s.Evaluation < 0 {
		return nil, nil, fmt.Errorf("%d steps, %d of evaluation; allowed are 0 or more", s.Steps, s.Evaluation)
	}
	several := 1
	if strings.Contains(s.Instance, anySeed) {
		several = s.Seeds
	}
	for k := range several {
		scene, err := s.scene(ctx, s.Seed+uint64(k))
		if err != nil {
			return nil, nil, err
		}
		scenes = append(scenes, scene)
	}
	epochs := scenes[0].Limit(s.Steps)
	if epochs == 0 {
		return nil, nil, errors.New("the world does not end; the number of steps is needed")
	}
	for k := range s.Policies {
		entry, settings, err := s.Policies[k].find(scenes[0], s.Knowledge)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, experiments.Play{Entry: entry, Settings: settings, Level: s.Knowledge, Epochs: epochs, Evaluation: s.Evaluation})
	}
	return scenes, all, nil
}

func (j *job) describe() any { return nil }

// call waits for the end of the job for a moment; it answers nothing while it goes
// on.
func (j *job) call(_ string, _ []byte, m *Made) error {
	select {
	case <-j.done:
		m.Answer = j.records
		return j.err
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}

// compare answers with the report of a comparison and its table.
func compare(text []byte) (any, error) {
	var c struct {
		Knowledge  env.Level
		Seeds      int
		Seed       uint64
		Contenders []experiments.Contender
	}
	if err := decode(text, &c); err != nil {
		return nil, err
	}
	report := experiments.Compare(c.Contenders, c.Knowledge, c.Seeds, c.Seed)
	var table strings.Builder
	err := result.Print(&table, &report, result.Text)
	return map[string]any{"report": report, "table": table.String()}, err
}
