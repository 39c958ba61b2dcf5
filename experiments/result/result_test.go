package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func sample() *Report {
	r := &Report{
		Instance: "paper", Algorithm: "lspe", Knowledge: "model", Budget: 1, Steps: 10, Seeds: 2, Seed: 3,
		Bound: RatioOf(200),
		Results: []Row{
			{
				Policy: "learned", Outcome: Outcome{Reward: 90, Crawls: 1.25, Over: .25, Overrun: .5},
				Lo: RatioOf(80), Hi: RatioOf(95),
				OfWhittle: RatioOf(.5), OfWhittleLo: RatioOf(.45), OfWhittleHi: RatioOf(.55), OfBound: RatioOf(.45),
				Diff: RatioOf(-90), DiffLo: RatioOf(-91), DiffHi: RatioOf(-89), Worst: RatioOf(.4),
			},
			{Policy: "whittle", Outcome: Outcome{Reward: 180, Crawls: 1}, OfWhittle: RatioOf(1), OfBound: RatioOf(.9)},
		},
		Notes: []string{"A <sentence>."},
	}
	return r
}

func print(t *testing.T, r *Report, f Format) string {
	t.Helper()
	var b bytes.Buffer
	if err := Print(&b, r, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Every figure stands under its heading, in machine output in full digits: testdata has the
// forms of one report.
func TestForms(t *testing.T) {
	for _, tt := range []struct {
		form Format
		file string
	}{{Text, "report.txt"}, {Markdown, "report.md"}, {CSV, "report.csv"}, {JSON, "report.json"}} {
		t.Run(string(tt.form), func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			if got := print(t, sample(), tt.form); got != string(want) {
				t.Errorf("printed\n%s\nwant, as in testdata/%s,\n%s", got, tt.file, want)
			}
		})
	}
	r := sample()
	r.Results = r.Results[1:]
	if got := print(t, r, Text); strings.Contains(got, "interval") || strings.Contains(got, "over") {
		t.Errorf("columns that no row fills:\n%s", got)
	}
}

// Names of sources are any text; a table stays a table.
func TestOddNames(t *testing.T) {
	tab := Table{Header: []string{"source", "x"}}
	tab.Add("a|b", "1")
	var b strings.Builder
	if err := tab.Write(&b, Markdown); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, `a\|b`) || strings.Count(got, "\n") != 3 {
		t.Errorf("markdown:\n%s", got)
	}
}

// A share near 1 shows how far from it it is.
func TestPercentOf(t *testing.T) {
	for _, tt := range []struct {
		share float64
		want  string
	}{
		{.8312, "83.12"},
		{.9954, "99.54"},
		{.99987, "99.987"},
		{.999991, "99.99910"},
		{1.0003, "100.030"},
		{1, "100.00"},
		{.99999999999999, "100.00"},
	} {
		if got := percentOf(tt.share); got != tt.want {
			t.Errorf("%v is %s %%; want %s", tt.share, got, tt.want)
		}
	}
}

// The bound is of the mean: a run of drawn content may earn more. One of costs is of the long
// run: nothing waits at the beginning. That of a recording holds for those with foresight, too.
func TestSentence(t *testing.T) {
	r := sample()
	for _, tt := range []struct {
		bound     Ratio
		foresight bool
		want      string
	}{
		{RatioOf(200), true, "earns more than 200.00 per epoch, also one that knows what will be published."},
		{RatioOf(200), false, "earns more than 200.00 per epoch, " +
			"but where content is drawn at random a run may by chance."},
		{RatioOf(-200), false, "earns more than -200.00 per epoch in the long run; " +
			"a short run, in which nothing waits at first, costs less."},
	} {
		r.Bound, r.Foresight = tt.bound, tt.foresight
		if s := r.Sentence(); !strings.HasSuffix(s, "; in the mean no policy that keeps the budget "+tt.want) {
			t.Error(s)
		}
	}
}

// Names of what is run may hold anything; a terminal is shown no control characters.
func TestPlain(t *testing.T) {
	r := sample()
	r.Results[0].Policy, r.Instance, r.Notes = "evil\x1b[2J", "in\x1b]0;title\x07", nil
	r.Notes = []string{r.Sentence()}
	for _, f := range []Format{Text, Markdown} {
		got := print(t, r, f)
		if strings.ContainsAny(got, "\x1b\x07") || !strings.Contains(got, `evil\x1b`) ||
			!strings.Contains(got, `in\x1b]0;`) {
			t.Errorf("%s: %q", f, got)
		}
	}
}

// Each measure has a place of its own in what is kept and printed: its name in outcomes,
// its column in rows, in JSON and CSV, and its heading for people; what is read back is the
// same.
func TestMeasures(t *testing.T) {
	row := Row{Policy: "a < b & c"}
	want := `{"epochs":0`
	for k, m := range Measures {
		*m.Of(&row.Outcome) = float64(k + 1)
		want += fmt.Sprintf(",%q:%d", m.Name, k+1)
	}
	if kept, err := json.Marshal(row.Outcome); err != nil || string(kept) != want+"}" {
		t.Errorf("an outcome is kept as %s, %v; want, with a name from each measure, %s}", kept, err, want)
	}
	r := &Report{Results: []Row{row}}
	var back struct{ Results []Row }
	if err := json.Unmarshal([]byte(print(t, r, JSON)), &back); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(print(t, r, CSV), "\n")
	head, cells := strings.Split(lines[0], ","), strings.Split(lines[1], ",")
	for k, m := range Measures {
		if m.Head == "" {
			continue // of single runs
		}
		if got := *m.Of(&back.Results[0].Outcome); got != float64(k+1) {
			t.Errorf("JSON reads %s back as %v; want %d", m.Column, got, k+1)
		}
		if at := slices.Index(head, m.Column); at < 0 || cells[at] != fmt.Sprint(k+1) {
			t.Errorf("CSV has %q under %q; want %s to be %d", cells, head, m.Column, k+1)
		}
		text := strings.Split(print(t, r, Markdown), "\n")
		heads := strings.Split(text[0], "|")
		at := slices.IndexFunc(heads, func(head string) bool { return strings.TrimSpace(head) == m.Head })
		if at < 0 || strings.TrimSpace(strings.Split(text[2], "|")[at]) != m.Cell(float64(k+1)) {
			t.Errorf("Markdown does not have %s as %s:\n%s", m.Head, m.Cell(float64(k+1)), strings.Join(text, "\n"))
		}
	}
	if got := back.Results[0].Policy; got != row.Policy {
		t.Errorf("the policy is read back as %q; want %q", got, row.Policy)
	}
}

// What is missing is NaN where it is computed with, and null or nothing in JSON, which are
// read back as missing; 0 is a number.
func TestRatio(t *testing.T) {
	type kept struct {
		Null Ratio `json:"null"`
		Left Ratio `json:"left,omitzero"`
	}
	for _, tt := range []struct {
		name string
		r    Ratio
		want string
	}{
		{"missing", Ratio{}, `{"null":null}`},
		{"not a number", RatioOf(math.NaN()), `{"null":null}`},
		{"infinite", RatioOf(math.Inf(-1)), `{"null":null}`},
		{"zero", RatioOf(0), `{"null":0,"left":0}`},
		{"a number", RatioOf(.25), `{"null":0.25,"left":0.25}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(kept{tt.r, tt.r})
			if err != nil || string(got) != tt.want {
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			}
			back := kept{RatioOf(7), Ratio{}}
			if err := json.Unmarshal(got, &back); err != nil || back.Null != tt.r || back.Left != tt.r {
				t.Errorf("%s is read back as %+v, %v", got, back, err)
			}
			if missing := math.IsNaN(tt.r.Value()); missing != tt.r.IsZero() || missing != (tt.r.Text(exact) == "") {
				t.Errorf("value %v, text %q", tt.r.Value(), tt.r.Text(exact))
			}
		})
	}
	if err := json.Unmarshal([]byte(`{"null":"many"}`), new(kept)); err == nil {
		t.Error("a text is read as a number")
	}
}
