package papers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
)

// short is a reproduction of few seeds and epochs.
func short(t *testing.T, o Options) *Report {
	t.Helper()
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWorkersDoNotMatter(t *testing.T) {
	var out [3]bytes.Buffer
	for i, workers := range []int{1, 2, 2} {
		r := short(t, Options{Seeds: 2, Seed: 3, Steps: 300, Workers: workers})
		for _, f := range []result.Format{result.JSON, result.Text, result.Markdown, result.CSV} {
			if err := r.Write(&out[i], f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !bytes.Equal(out[0].Bytes(), out[1].Bytes()) || !bytes.Equal(out[1].Bytes(), out[2].Bytes()) {
		t.Error("equal runs print different bytes")
	}
	var other bytes.Buffer
	if err := short(t, Options{Seeds: 2, Seed: 4, Steps: 300, Workers: 2}).Write(&other, result.JSON); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out[0].Bytes(), other.Bytes()[100:]) {
		t.Error("another seed gives the same figures")
	}
}

func TestReport(t *testing.T) {
	r := short(t, Options{Seeds: 6, Seed: 1, Steps: 1500, Workers: 2})
	var b bytes.Buffer
	if err := r.Write(&b, result.JSON); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Rows []map[string]any `json:"rows"`
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	seen := map[string]Row{}
	documents := map[string]bool{}
	for i, row := range back.Rows {
		for _, key := range []string{"id", "document", "place", "quantity", "unit", "printed", "published", "measured", "lo", "hi", "verdict", "reason", "tried"} {
			if _, ok := row[key]; !ok {
				t.Errorf("%v: %q is missing", row["id"], key)
			}
		}
		x := r.Rows[i]
		if _, twice := seen[x.ID]; twice {
			t.Errorf("%s is there twice", x.ID)
		}
		seen[x.ID] = x
		documents[x.Document] = true
		if x.Reason == "" || !slices.Contains([]Verdict{Reproduced, Differs, NotReproducible}, x.Verdict) {
			t.Errorf("%s: verdict %q, reason %q", x.ID, x.Verdict, x.Reason)
		}
		if (x.Lo == nil) != (x.RunLo == nil) {
			t.Errorf("%s: interval %v of the mean and %v of runs", x.ID, x.Lo, x.RunLo)
		}
		if x.Lo != nil && !(*x.Lo <= x.Measured && x.Measured <= *x.Hi) {
			t.Errorf("%s: %v is not between %v and %v", x.ID, x.Measured, *x.Lo, *x.Hi)
		}
	}
	if len(documents) != 4 {
		t.Errorf("documents are %v, want four", documents)
	}
	// Every figure that the four documents print.
	for id, published := range map[string]float64{
		"tcns/whittle-1": 260.30, "tcns/relaxed": 260.96, "tcns/relaxed-violations": 0.01, "tcns/source-1-only": 179.8,
		"tcns/poisson-whittle": 253.1, "tcns/poisson-greedy": 260.2, "tcns/poisson-round-robin": 208.4,
		"tcns/exponential-whittle": 283.8, "tcns/exponential-greedy": 259.3, "tcns/exponential-round-robin": 207.3,
		"cdc/source-1-only": 179.79, "cdc/whittle-1": 254.66,
		"slides/source-1-only": 179.79, "slides/whittle-1": 254.66, "slides/round-robin": 208, "slides/greedy": 260, "slides/whittle-stochastic": 285,
		"allerton/reward": 160, "allerton/crawls": 1, "allerton/whittle": 283,
	} {
		if x, ok := seen[id]; !ok || x.Published != published {
			t.Errorf("%s: published is %v, want %v", id, x.Published, published)
		}
	}
	// What draws nothing does not depend on the seeds.
	for id, want := range map[string]struct {
		measured float64
		verdict  Verdict
	}{
		"tcns/whittle-1":          {260.30, Reproduced},
		"tcns/source-1-only":      {179.79, Reproduced},
		"tcns/relaxed":            {259.46, NotReproducible},
		"tcns/period-source-1":    {2, Reproduced},
		"tcns/never-source-4":     {0, Reproduced},
		"tcns/always-source-1":    {1, Reproduced},
		"tcns/irregular-source-3": {2, Reproduced},
		"tcns/period-source-4":    {7, Reproduced},
		"cdc/whittle-1":           {260.30, NotReproducible},
		"allerton/second-source":  {147.66, Reproduced},
	} {
		x := seen[id]
		if math.Abs(x.Measured-want.measured) > 0.005 || x.Verdict != want.verdict || x.Lo != nil {
			t.Errorf("%s: %v, %s; want %v, %s", id, x.Measured, x.Verdict, want.measured, want.verdict)
		}
	}
	// The reading that gives both figures of the relaxed control is one that was
	// sought.
	for _, id := range []string{"tcns/relaxed", "tcns/relaxed-violations"} {
		tried := seen[id].Tried
		if a := tried[len(tried)-1]; !a.Agrees || a.Barred != sought {
			t.Errorf("%s: the last reading is %+v", id, a)
		}
	}
}

// TCNS, section IX: with Poisson arrivals "the Whittle index policy produces the
// average reward 253.1, which is smaller than the reward produced by the
// Greedy-type policy, 260.2"; with M = 2 "source 1 is crawled from time to time".
// Theorem 1 does neither. The form on the slides, η((1−α)x − u) + x with ⌈·⌉,
// does both.
func TestPaperSlidesForm(t *testing.T) {
	got, err := playLaw(context.Background(), laws[0], 5, 4000)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]float64{
		"constant/theorem": 260.5, "constant/theorem-extended": 260.3, "constant/greedy": 260.3, "constant/remark": 260.1,
		"constant/slides": 253.4, "constant/slides-real": 253.0, "constant/slides-modulus": 253.0,
	} {
		if v := got[key]; math.Abs(v-want) > 0.8 {
			t.Errorf("%s earns %.2f, want %.1f", key, v, want)
		}
	}
	if v := got["constant/theorem/source-1"]; v < 0.999 {
		t.Errorf("Theorem 1 crawls source 1 in %.3f of the epochs, want all", v)
	}
	if v := got["constant/slides/source-1"]; math.Abs(v-0.77) > 0.03 {
		t.Errorf("the slides' form crawls source 1 in %.3f of the epochs, want 0.77", v)
	}
}

// CDC and the slides: "the index policy involving two sources results in the
// average reward 254.66". 61 epochs from empty sources give it, to the digit.
func TestPaperShortHorizon(t *testing.T) {
	s := samples{}
	if err := fixed(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	if v := s.mean("mean-1/whittle-empty-61"); math.Round(v*100) != 25466 {
		t.Errorf("61 epochs from empty sources give %.4f, want 254.66", v)
	}
}

// The tape must pay what the simulator of single items pays.
func TestTapeIsTheSimulator(t *testing.T) {
	const n = 400
	for _, marks := range []env.Marks{env.MarksConstant, env.MarksPerItem, env.MarksPerEpoch} {
		in := env.Paper(2)
		tp, err := record(in.Sources, 11, n, marks)
		if err != nil {
			t.Fatal(err)
		}
		w, err := env.NewPoisson(in, 11, env.PoissonOptions{Marks: marks, State: true})
		if err != nil {
			t.Fatal(err)
		}
		want, err := experiments.Run(w, env.NewAgent(baselines.NewWhittleObserved(in, false)), n, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := experiments.Run(tp.world(2, false), env.NewAgent(baselines.NewWhittleObserved(in, false)), n, nil)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Reward-want.Reward) > 1e-9*want.Reward || got.Crawls != want.Crawls {
			t.Errorf("%s: the tape pays %v for %v crawls, the simulator %v for %v", marks, got.Reward, got.Crawls, want.Reward, want.Crawls)
		}
	}
}

func TestTapeKeepsTheBudget(t *testing.T) {
	w := even(env.Paper(1).Sources, 3).world(1, false)
	for _, crawl := range [][]int{{0, 1}, {4}, {-1}} {
		if _, err := w.Step(crawl); err == nil {
			t.Errorf("crawl of %v is accepted", crawl)
		}
	}
}

// Forms that are in baselines as well must agree with it; on the states of the
// mean dynamics all forms agree, and just above them that of the slides falls
// by u − (1−α)x.
func TestForms(t *testing.T) {
	literal, ext := form{false, math.Ceil, zero}, form{false, math.Ceil, extended}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*math.Max(1, math.Abs(want)) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	for i, s := range env.Paper(1).Sources {
		for k := range 400 {
			x := s.Ceiling() * float64(k) / 170.3
			near(fmt.Sprintf("source %d, literal at %v", i+1, x), literal.index(s, x), index.WhittleLiteral(s, x))
			near(fmt.Sprintf("source %d, extended at %v", i+1, x), ext.index(s, x), index.Whittle(s, x))
		}
		for age := 1; age < 8; age++ {
			x := s.MeanState(age)
			at := index.WhittleAtAge(s, age)
			near("remark", form{true, exact, zero}.index(s, x), at)
			slides := form{true, math.Ceil, zero}
			eps := 1e-9 * s.Gain()
			near("slides below", slides.index(s, x-eps), at)
			near("slides above", slides.index(s, x+eps), at-(s.Gain()-(1-s.Factor())*x))
		}
		x := 1.3 * s.Ceiling()
		near("real part", form{true, math.Ceil, realPart}.index(s, x), math.Ceil(-math.Log(0.3)/s.Decay)*((1-s.Factor())*x-s.Gain())+x)
	}
}

func TestVerdicts(t *testing.T) {
	words := func(v ...float64) Sample { return Sample{Values: v} }
	seeds := func(mean float64) Sample { // standard deviation 1
		return Sample{Values: []float64{mean - 1, mean + 1, mean - 1, mean + 1, mean - 1, mean + 1, mean - 1, mean + 1, mean, mean}, Random: true}
	}
	fig := func(printed, open string) figure { return equal("x", "d", "p", "q", "u", printed, open) }
	for _, c := range []struct {
		name    string
		f       figure
		samples []Sample
		barred  []string
		want    Verdict
		chosen  int
		say     string
	}{
		{"within rounding", fig("260.30", ""), []Sample{words(260.3049)}, nil, Reproduced, 0, "as printed"},
		{"beyond rounding", fig("260.30", ""), []Sample{words(260.3051)}, nil, Differs, 0, "leaves nothing open"},
		{"beyond rounding, open", fig("260.30", "where it begins"), []Sample{words(260.31)}, nil, NotReproducible, 0, "where it begins"},
		{"coarser rounding", fig("179.8", ""), []Sample{words(179.76)}, nil, Reproduced, 0, "as printed"},
		{"whole number", fig("208", ""), []Sample{words(208.4)}, nil, Reproduced, 0, ""},
		{"single run within", fig("100", ""), []Sample{seeds(102)}, nil, Reproduced, 0, "standard deviations"},
		{"single run beyond", fig("100", ""), []Sample{seeds(103)}, nil, Differs, 0, ""},
		{"second reading", fig("100", "how"), []Sample{seeds(140), seeds(101)}, nil, Reproduced, 1, "140.00"},
		{"only a sought reading", fig("100", "how"), []Sample{seeds(140), seeds(100)}, []string{"", sought}, NotReproducible, 0, sought},
		{"a sought one and another", fig("100", "how"), []Sample{seeds(140), seeds(100), seeds(101)}, []string{"", sought, ""}, Reproduced, 2, ""},
		{"scatter", fig("2", "how"), []Sample{seeds(2)}, nil, NotReproducible, 0, scatter},
		{"words, below", claim("x", "d", "p", "q", "u", "less than 1 %", Below, 0.01), []Sample{words(0.009)}, nil, Reproduced, 0, ""},
		{"words, not below", claim("x", "d", "p", "q", "u", "less than 1 %", Below, 0.01), []Sample{words(0.01)}, nil, Differs, 0, ""},
		{"words, above", claim("x", "d", "p", "q", "u", "long", Above, 2), []Sample{words(7)}, nil, Reproduced, 0, ""},
		{"words, not above", claim("x", "d", "p", "q", "u", "long", Above, 2), []Sample{words(2)}, nil, Differs, 0, ""},
	} {
		var attempts []Attempt
		for i, s := range c.samples {
			r := reading{text: "reading"}
			if c.barred != nil {
				r.barred = c.barred[i]
			}
			attempts = append(attempts, c.f.assess(r, s, nil))
		}
		row := c.f.row(attempts)
		if row.Verdict != c.want || row.Measured != attempts[c.chosen].Measured || !strings.Contains(row.Reason, c.say) {
			t.Errorf("%s: %s, measured %v, %q; want %s of reading %d, saying %q", c.name, row.Verdict, row.Measured, row.Reason, c.want, c.chosen, c.say)
		}
	}
}

func TestPeriodAndGaps(t *testing.T) {
	for _, c := range []struct {
		crawls       []float64
		period, gaps int
	}{
		{[]float64{1, 0, 1, 0, 1, 0, 1}, 2, 1},
		{[]float64{0, 0, 0, 0}, 0, 0},
		{[]float64{1, 1, 1, 1}, 1, 1},
		{[]float64{1, 0, 1, 0, 0, 1, 0, 1, 0, 0}, 5, 2},
		{[]float64{1, 0, 0, 1, 0, 1}, 0, 2},
	} {
		if p, g := period(c.crawls), gaps(c.crawls); p != c.period || g != c.gaps {
			t.Errorf("%v: period %d and %d gaps, want %d and %d", c.crawls, p, g, c.period, c.gaps)
		}
	}
}

func TestPicturesAreTheSame(t *testing.T) {
	one, err := Pictures(1)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Pictures(1)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Pictures(2)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range one {
		if want := fmt.Sprintf("tcns-figure-%d", i/2+1); !strings.HasPrefix(p.Name, want) {
			t.Errorf("picture %d is called %q, want %s", i, p.Name, want)
		}
		if !bytes.Equal(p.Data, two[i].Data) {
			t.Errorf("%s changes from run to run", p.Name)
		}
		if same, last := bytes.Equal(p.Data, other[i].Data), i >= 6; same == last {
			t.Errorf("%s: same bytes under another seed is %v", p.Name, same)
		}
		if head := []byte("\x89PNG"); strings.HasSuffix(p.Name, ".png") && !bytes.HasPrefix(p.Data, head) || strings.HasSuffix(p.Name, ".svg") && !bytes.Contains(p.Data, []byte("<svg")) {
			t.Errorf("%s does not hold what its name says", p.Name)
		}
	}
	// The page shows what is drawn. Other processors may fuse operations and
	// differ in the last digit.
	for _, p := range one {
		if runtime.GOARCH != "amd64" || !strings.HasSuffix(p.Name, ".svg") {
			continue
		}
		if b, err := os.ReadFile(filepath.Join("..", "..", "docs", "papers", p.Name)); err != nil || !bytes.Equal(b, p.Data) {
			t.Errorf("docs/papers/%s is not what is drawn (%v)", p.Name, err)
		}
	}
	if len(one) != 8 {
		t.Errorf("%d files, want 8", len(one))
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := Run(ctx, Options{Seeds: 2, Seed: 1, Steps: 100, Workers: 2}); err == nil {
		t.Errorf("a cancelled run gives %d rows", len(r.Rows))
	}
}

// A share is printed in per cent, as the papers print it.
func TestShareInPerCent(t *testing.T) {
	lo, hi := .25, .5
	a := Attempt{Reading: "a reading", Measured: .366, RunLo: &lo, RunHi: &hi}
	if got := a.in(shares); got != "a reading 37 % (single runs 25 % to 50 %)" {
		t.Error(got)
	}
	if got := a.in(perEpoch); got != "a reading 0.37 (single runs 0.25 to 0.50)" {
		t.Error(got)
	}
}
