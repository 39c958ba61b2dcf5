package native

import (
	"cmp"
	"context"
	"runtime"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
)

// job performs runs beside Python, which looks for signals while it waits.
type job struct {
	stop    context.CancelFunc
	done    chan struct{}
	records []*experiments.Record
	err     error
}

// startRuns begins a job.
func startRuns(text []byte) (*job, error) {
	var s struct {
		Runs    []experiments.Run
		Workers int // 0 for one per processor
	}
	if err := decode(text, &s); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	engine := new(experiments.Engine)
	for _, r := range s.Runs {
		if _, err := engine.Resolve(ctx, r); err != nil {
			stop()
			return nil, err // before any of them is run
		}
	}
	j := &job{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(j.done)
		defer stop()
		all, err := engine.PerformAll(ctx, s.Runs, experiments.Batch{Workers: cmp.Or(s.Workers, runtime.GOMAXPROCS(0))})
		if j.err = err; err == nil {
			j.records, j.err = all.Records, cmp.Or(all.Errors...)
		}
	}()
	return j, nil
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
