package result

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func sample() *Report {
	r := &Report{
		Instance: "paper", Algorithm: "lspe", Knowledge: "model", Budget: 1, Steps: 10, Seeds: 2, Seed: 3,
		Bound: Ptr(200),
		Results: []Row{
			{Policy: "learned", Reward: 90, Lo: Ptr(80), Hi: Ptr(95), Crawls: 1.25, Over: .25, Overrun: .5, OfWhittle: Ptr(.5), OfWhittleLo: Ptr(.45), OfWhittleHi: Ptr(.55), OfBound: Ptr(.45), Diff: Ptr(-90), DiffLo: Ptr(-91), DiffHi: Ptr(-89), Worst: Ptr(.4)},
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

// Every figure stands under its heading, in machine output in full digits.
func TestForms(t *testing.T) {
	for f, want := range map[Format]string{
		Text: ` policy     reward   95 % interval  less Whittle  crawls/epoch  % of Whittle  share's interval  worst %  % over budget
───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
 learned *   90.00  80.00 to 95.00        -90.00         1.250         50.00    45.00 to 55.00    40.00          25.00
 whittle    180.00                                       1.000        100.00                                      0.00

A <sentence>.

Left out for want of room: its interval, % of bound, mean overrun; -format markdown has them.
`,
		Markdown: `| policy    | reward |  95 % interval | less Whittle |     its interval | crawls/epoch | % of Whittle | share's interval | worst % | % of bound | % over budget | mean overrun |
|:----------|-------:|---------------:|-------------:|-----------------:|-------------:|-------------:|-----------------:|--------:|-----------:|--------------:|-------------:|
| learned * |  90.00 | 80.00 to 95.00 |       -90.00 | -91.00 to -89.00 |        1.250 |        50.00 |   45.00 to 55.00 |   40.00 |      45.00 |         25.00 |        0.500 |
| whittle   | 180.00 |                |              |                  |        1.000 |       100.00 |                  |         |      90.00 |          0.00 |        0.000 |

A <sentence>.
`,
		CSV: `instance,algorithm,knowledge,budget,steps,seeds,seed,policy,reward,lo,hi,crawls,of_whittle,of_bound,over_budget,overrun,diff,diff_lo,diff_hi,worst,epochs,of_whittle_lo,of_whittle_hi
paper,lspe,model,1,10,2,3,learned,90,80,95,1.25,0.5,0.45,0.25,0.5,-90,-91,-89,0.4,0,0.45,0.55
paper,lspe,model,1,10,2,3,whittle,180,,,1,1,0.9,0,0,,,,,0,,
`,
		JSON: `{"instance":"paper","algorithm":"lspe","knowledge":"model","budget":1,"steps":10,"seeds":2,"seed":3,"bound":200,"results":[{"policy":"learned","epochs":0,"reward":90,"lo":80,"hi":95,"crawls":1.25,"of_whittle":0.5,"of_whittle_lo":0.45,"of_whittle_hi":0.55,"of_bound":0.45,"over_budget":0.25,"overrun":0.5,"diff":-90,"diff_lo":-91,"diff_hi":-89,"worst":0.4},{"policy":"whittle","epochs":0,"reward":180,"lo":null,"hi":null,"crawls":1,"of_whittle":1,"of_whittle_lo":null,"of_whittle_hi":null,"of_bound":0.9,"over_budget":0,"overrun":0,"diff":null,"diff_lo":null,"diff_hi":null,"worst":null}]}`,
	} {
		got := print(t, sample(), f)
		if f == JSON {
			var b bytes.Buffer
			if err := json.Compact(&b, []byte(got)); err != nil {
				t.Fatal(err)
			}
			got = b.String()
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", f, got, want)
		}
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
	for v, want := range map[float64]string{.8312: "83.12", .9954: "99.54", .99987: "99.987", .999991: "99.99910", 1.0003: "100.030", 1: "100.00", .99999999999999: "100.00"} {
		if got := percentOf(v); got != want {
			t.Errorf("%v is %s %%; want %s", v, got, want)
		}
	}
}

// Names of what is run may hold anything; a terminal is shown no control characters.
func TestPlain(t *testing.T) {
	r := sample()
	r.Results[0].Policy, r.Instance, r.Notes = "evil\x1b[2J", "in\x1b]0;title\x07", nil
	r.Notes = []string{r.Sentence()}
	for _, f := range []Format{Text, Markdown} {
		if got := print(t, r, f); strings.ContainsAny(got, "\x1b\x07") || !strings.Contains(got, `evil\x1b`) || !strings.Contains(got, `in\x1b]0;`) {
			t.Errorf("%s: %q", f, got)
		}
	}
}
