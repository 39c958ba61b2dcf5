package result

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func sample() *Report {
	r := &Report{
		Instance: "paper", Algorithm: "paper", Knowledge: "model", Budget: 1, Steps: 10, Seeds: 1, Seed: 1,
		Bound: Ptr(200), Timing: &Timing{StepsPerSecond: 1234567.8, Decision: map[string]float64{"whittle": 77}},
		Results: []Row{
			{Policy: "learned", Reward: 90, Crawls: 1.25, Over: .25, Overrun: .5},
			{Policy: "whittle", Reward: 180, Crawls: 1},
		},
		Notes: []string{"A sentence."},
	}
	r.Complete()
	return r
}

func print(t *testing.T, r *Report, f Format) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTable(t *testing.T) {
	got := print(t, sample(), Text)
	for _, want := range []string{"policy", "learned", "90.00", "1.250", "50.00", "45.00", "25.00", "0.500", "A sentence."} {
		if !strings.Contains(got, want) {
			t.Errorf("the table does not show %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "interval") || strings.Contains(got, "worst") {
		t.Errorf("the table shows columns that no row fills:\n%s", got)
	}
	for _, line := range strings.Split(got, "\n") {
		if line != strings.TrimRight(line, " ") {
			t.Errorf("trailing blanks in %q", line)
		}
	}
}

func TestMarkdown(t *testing.T) {
	got := print(t, sample(), Markdown)
	lines := strings.Split(got, "\n")
	if !strings.HasPrefix(lines[0], "|") || !strings.Contains(lines[1], "--") {
		t.Errorf("not a markdown table:\n%s", got)
	}
	bars := strings.Count(lines[0], "|")
	for _, l := range lines[:4] {
		if strings.Count(l, "|") != bars {
			t.Errorf("ragged line %q", l)
		}
	}
}

func TestCSV(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(print(t, sample(), CSV)), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want a heading and two rows", len(lines))
	}
	for _, l := range lines {
		if strings.Count(l, ",") != strings.Count(lines[0], ",") {
			t.Errorf("ragged line %q", l)
		}
	}
}

func TestJSON(t *testing.T) {
	var r struct {
		Bound   *float64
		Results []map[string]any
	}
	if err := json.Unmarshal([]byte(print(t, sample(), JSON)), &r); err != nil {
		t.Fatal(err)
	}
	if *r.Bound != 200 {
		t.Errorf("bound %v; want 200", *r.Bound)
	}
	row := r.Results[0]
	if row["of_whittle"] != .5 || row["of_bound"] != .45 || row["lo"] != nil {
		t.Errorf("row %v", row)
	}
	if _, there := row["lo"]; !there {
		t.Error("lo is left out; it has to be null")
	}
}

// A measured time stands in tables, in full digits, and in no machine output.
func TestTiming(t *testing.T) {
	r := sample()
	for f, want := range map[Format]bool{Text: true, Markdown: true, CSV: false, JSON: false} {
		got := print(t, r, f)
		if strings.Contains(got, "1234568 steps per second") != want || strings.Contains(got, "77") != want {
			t.Errorf("%s:\n%s", f, got)
		}
		r.Timing = nil
		without := print(t, r, f)
		r = sample()
		if strings.Contains(without, "per second") || strings.Contains(without, "decision") || (without == got) == want {
			t.Errorf("%s without times:\n%s", f, without)
		}
	}
}

func TestPtr(t *testing.T) {
	if Ptr(math.NaN()) != nil || Ptr(math.Inf(1)) != nil || *Ptr(2) != 2 {
		t.Error("Ptr has to leave out what JSON cannot hold")
	}
}

func TestRaggedRowPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a row of the wrong length was taken")
		}
	}()
	tab := Table{Header: []string{"a", "b"}}
	tab.Add("1")
}

// Names of sources are any text; a table stays a table.
func TestOddNames(t *testing.T) {
	tab := Table{Header: []string{"source", "x"}}
	tab.Add("a|b\nc", "1")
	var b strings.Builder
	if err := tab.Write(&b, Markdown); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, `a\|b c`) || strings.Count(got, "\n") != 3 {
		t.Errorf("markdown:\n%s", got)
	}
}

// Every figure stands under its heading.
func TestCSVColumns(t *testing.T) {
	r := &Report{Instance: "i", Algorithm: "a", Knowledge: "k", Budget: 1, Steps: 2, Seeds: 3, Seed: 4, Results: []Row{{
		Policy: "p", Reward: 5, Lo: Ptr(6), Hi: Ptr(7), Crawls: 8, OfWhittle: Ptr(9), OfBound: Ptr(10), Over: 11, Overrun: 12,
		Diff: Ptr(13), DiffLo: Ptr(14), DiffHi: Ptr(15), Worst: Ptr(16),
	}}}
	want := "instance,algorithm,knowledge,budget,steps,seeds,seed,policy,reward,lo,hi,crawls,of_whittle,of_bound,over_budget,overrun,diff,diff_lo,diff_hi,worst\n" +
		"i,a,k,1,2,3,4,p,5,6,7,8,9,10,11,12,13,14,15,16\n"
	if got := print(t, r, CSV); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// No form prints what would steer a terminal.
func TestControlCharacters(t *testing.T) {
	r := sample()
	const odd = "x\x1b]0;pwned\x07\u202e"
	r.Instance, r.Results[0].Policy, r.Notes = odd, odd, []string{odd}
	r.More = &Table{Header: []string{odd}, Rows: [][]string{{odd}}}
	for _, f := range []Format{Text, Markdown, CSV, JSON} {
		if got := print(t, r, f); strings.ContainsAny(got, "\x1b\x07") || f != JSON && strings.Contains(got, "\u202e") || !strings.Contains(got, "pwned") {
			t.Errorf("%s: %q", f, got)
		}
	}
}

func TestCount(t *testing.T) {
	if one, more := Count(1, "seed"), Count(20, "seed"); one != "1 seed" || more != "20 seeds" {
		t.Errorf("%q and %q", one, more)
	}
}
