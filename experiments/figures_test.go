package experiments

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ephemera/experiments/result"
)

// Of a regret of n^0.6 the fit finds the exponent, and the total is that of the
// run. A recording has no exponent: its bound is of all epochs.
func TestRegret(t *testing.T) {
	const epochs = 100_000
	bound := 7.0
	r := &Record{Bound: result.RatioOf(bound)}
	r.Learning.Epochs = epochs
	r.Learning.Reward = bound - math.Pow(epochs, .6)/epochs
	last := 0
	for _, n := range Milestones(epochs) {
		lost := math.Pow(float64(n), .6) - math.Pow(float64(last), .6)
		r.Curve = append(r.Curve, CurvePoint{Epoch: n, Reward: bound - lost/float64(n-last)})
		last = n
	}
	if got, want := r.Regret(), math.Pow(epochs, .6); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("regret %v, want %v", got, want)
	}
	if got := r.RegretExponent(); math.Abs(got-.6) > 1e-6 {
		t.Errorf("exponent %v, want 0.6", got)
	}
	if r.Fitted = true; !math.IsNaN(r.RegretExponent()) {
		t.Error("an exponent by the bound of all epochs of a recording")
	}
	r.Fitted, r.Bound = false, result.Ratio{}
	if !math.IsNaN(r.Regret()) || !math.IsNaN(r.RegretExponent()) {
		t.Error("a regret without a bound")
	}
}

// Runs have each measure in their lists, and sweeps where it has a name for them, of the part
// that it names.
func TestMeasuresOfRuns(t *testing.T) {
	r := &Record{}
	for k, m := range result.Measures {
		*m.Of(&r.Learning.Outcome), *m.Of(&r.Learned.Outcome) = float64(k+1), float64(k+101)
	}
	runs := RunsTable([]Contender{{Name: "one", Records: []*Record{r}}})
	for k, m := range result.Measures {
		if at := slices.Index(runs.Header, m.Column); at < 0 || runs.Rows[0][at] != fmt.Sprint(k+101) {
			t.Errorf("runs %q under %q; want %s to be %d", runs.Rows[0], runs.Header, m.Column, k+101)
		}
		for _, c := range []struct {
			name string
			want float64
		}{{m.Learning, float64(k + 1)}, {m.Learned, float64(k + 101)}} {
			if c.name == "" {
				continue
			}
			at := slices.IndexFunc(FiguresOfRuns, func(f Figure) bool { return f.Name == c.name })
			if at < 0 || FiguresOfRuns[at].Of(r) != c.want || FiguresOfRuns[at].Less != m.Less {
				t.Errorf("sweeps do not have %s, %v", c.name, c.want)
			}
		}
	}
	for _, f := range FiguresOfRuns {
		if f.Of == nil || f.Words == "" {
			t.Errorf("%s is no figure of a measure, and has none of its own", f.Name)
		}
	}
}

// A record that an earlier version wrote still has its thresholds; a record of this one is
// read as it was written.
func TestRecordOfEarlierVersion(t *testing.T) {
	want := []Pair{{Source: "a", Learned: 2, Exact: result.RatioOf(1.5)}}
	written, err := json.Marshal(Record{Pairs: want})
	if err != nil {
		t.Fatal(err)
	}
	earlier := strings.Replace(string(written), `"thresholds"`, `"beside"`, 1)
	if earlier == string(written) {
		t.Fatalf("%s has no thresholds", written)
	}
	for _, text := range []string{earlier, string(written)} {
		var r Record
		if err := json.Unmarshal([]byte(text), &r); err != nil || !slices.Equal(r.Pairs, want) {
			t.Errorf("%s: thresholds %+v, error %v; want %+v", text, r.Pairs, err, want)
		}
	}
}

// A record of a version that counted fewer figures is refused, and is not read as if they were 0.
func TestRecordWithoutAFigure(t *testing.T) {
	for _, m := range result.Measures {
		for _, part := range []string{"learning", "learned"} {
			written, err := json.Marshal(Record{})
			if err != nil {
				t.Fatal(err)
			}
			var all map[string]map[string]any
			json.Unmarshal(written, &all) // what is no object stays nil
			if _, ok := all[part][m.Name]; !ok {
				t.Fatalf("%s of a record has no %s: %s", part, m.Name, written)
			}
			delete(all[part], m.Name)
			text, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			err = json.Unmarshal(text, new(Record))
			if want := part + " has no " + m.Name; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a record without %s of %s: error %v; want %q", m.Name, part, err, want)
			}
		}
	}
}
