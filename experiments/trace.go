package experiments

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// metrics are the means since the last row, and the figures of the learner at its
// end, over time.
type metrics struct {
	Rows   [][]float64 `json:"rows"`
	N      int         `json:"n"` // epochs since the last row
	Reward float64     `json:"reward"`
	Crawls float64     `json:"crawls"`
}

// see books epoch n, so that there are that many rows in the end.
func (m *metrics) see(l learner.Learner, n, rows, epochs int, reward float64, crawls []env.Crawled) error {
	if rows <= 0 {
		return nil
	}
	m.N++
	m.Reward += reward
	m.Crawls += float64(len(crawls))
	// Row k ends at the epoch ⌈k epochs/rows⌉.
	if k := float64(len(m.Rows) + 1); float64(n+1)*float64(rows) < k*float64(epochs) {
		return nil
	}
	own, err := figures(l, n)
	if err != nil {
		return err
	}
	row := []float64{float64(n + 1), m.Reward / float64(m.N), m.Crawls / float64(m.N)}
	*m = metrics{Rows: append(m.Rows, append(row, own...))}
	return nil
}

// figures returns a learner's own figures, which have to be finite.
func figures(l learner.Learner, epoch int) (own []float64, err error) {
	for _, x := range l.Metrics() {
		if math.IsNaN(x.Value) || math.IsInf(x.Value, 0) {
			return nil, fmt.Errorf("epoch %d: the learner's %s is %v, %w", epoch, x.Name, x.Value, ErrNotFinite)
		}
		own = append(own, x.Value)
	}
	return own, nil
}

// trace is what a training keeps for pictures, as data.
type trace struct {
	Curves []curve  `json:"curves"`
	Crawls [][2]int `json:"crawls"` // epoch and source, of what was learned, in the last epochs
}

// curve is what a policy earned over a run.
type curve struct {
	Policy string    `json:"policy"`
	Epochs []int     `json:"epochs"` // the Milestones that have passed
	Reward []float64 `json:"reward"` // mean since the one before, interest per epoch
	Sum    float64   `json:"sum"`    // since the last one
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

// A trace holds the crawls of the last epochs, but no more than so many.
const (
	tracedEpochs = 100
	tracedCrawls = 20_000
)

// watch returns a watcher of a policy's run. It goes on with the curve of the
// learner, and begins any other afresh.
func (t *trace) watch(policy string, epochs int) Watcher {
	k := slices.IndexFunc(t.Curves, func(c curve) bool { return c.Policy == policy })
	if k < 0 {
		k, t.Curves = len(t.Curves), append(t.Curves, curve{})
	}
	c := &t.Curves[k]
	if policy != "learning" || c.Policy == "" {
		*c = curve{Policy: policy}
	}
	at := Milestones(epochs)
	return func(n int, reward float64, crawls []env.Crawled) error {
		if policy == "learned" {
			t.crawled(n, epochs, crawls)
		}
		c.Sum += reward
		if k := len(c.Epochs); k < len(at) && n+1 == at[k] {
			before := 0
			if k > 0 {
				before = at[k-1]
			}
			c.Epochs, c.Reward, c.Sum = append(c.Epochs, n+1), append(c.Reward, c.Sum/float64(n+1-before)), 0
		}
		return nil
	}
}

// crawled keeps the crawls of one of the last epochs.
func (t *trace) crawled(n, epochs int, crawls []env.Crawled) {
	if n == 0 {
		t.Crawls = nil
	}
	if n < epochs-tracedEpochs || len(t.Crawls)+len(crawls) > tracedCrawls {
		return
	}
	for _, c := range crawls {
		t.Crawls = append(t.Crawls, [2]int{n, c.Source})
	}
}

// Tables returns the metrics, the curves, and the crawls of the sources of an
// instance.
func (t *Trained) Tables(in env.Instance) (metrics, curves, crawls *result.Table) {
	metrics = &result.Table{Header: []string{"epoch", "reward", "crawls"}}
	for _, m := range t.Trainee.Metrics() {
		metrics.Header = append(metrics.Header, m.Name)
	}
	for _, row := range t.Metrics.Rows {
		var cells []string
		for _, v := range row {
			cells = append(cells, result.Exact(v))
		}
		metrics.Add(cells...)
	}
	curves = &result.Table{Header: []string{"policy", "epoch", "reward"}}
	for _, c := range t.Trace.Curves {
		for k, n := range c.Epochs[:min(len(c.Epochs), len(c.Reward))] {
			curves.Add(c.Policy, strconv.Itoa(n), result.Exact(c.Reward[k]))
		}
	}
	crawls = &result.Table{Header: []string{"epoch", "source"}}
	for _, c := range t.Trace.Crawls {
		crawls.Add(strconv.Itoa(c[0]), SourceName(in, c[1]))
	}
	return metrics, curves, crawls
}

// SourceName returns the name of source i, or its number from 1 on.
func SourceName(in env.Instance, i int) string {
	if i >= 0 && i < len(in.Sources) && in.Sources[i].Name != "" {
		return in.Sources[i].Name
	}
	return strconv.Itoa(i + 1)
}
