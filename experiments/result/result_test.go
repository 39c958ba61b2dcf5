package result

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sample() *Report {
	r := &Report{
		Instance: "paper", Algorithm: "lspe", Knowledge: "model", Budget: 1, Steps: 10, Seeds: 2, Seed: 3,
		Bound: Ptr(200),
		Results: []Row{
			{
				Policy: "learned", Reward: 90, Lo: Ptr(80), Hi: Ptr(95), Crawls: 1.25, Over: .25, Overrun: .5,
				OfWhittle: Ptr(.5), OfWhittleLo: Ptr(.45), OfWhittleHi: Ptr(.55), OfBound: Ptr(.45),
				Diff: Ptr(-90), DiffLo: Ptr(-91), DiffHi: Ptr(-89), Worst: Ptr(.4),
			},
			{Policy: "whittle", Reward: 180, Crawls: 1, OfWhittle: Ptr(1), OfBound: Ptr(.9)},
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
