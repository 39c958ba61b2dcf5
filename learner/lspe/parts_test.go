package lspe

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"ephemera/env/envtest"
)

var without = flag.String("without", "", "play the worlds of TestParts and write to this file what was earned; "+
	"TestParts calls the learner so in which a part is taken out")

// edit puts a text in the place of another, which stands in a file once.
type edit struct{ file, text, by string }

const (
	critics   = "critic.go"
	inverses  = "../critic/small.go"
	actors    = "actor.go"
	options   = "settings.go"
	numbers   = "tuning.go"
	schedules = "schedule.go"
)

// unchecked leaves out the looks at the inverses.
var unchecked = edit{critics, "k <= 8 || k%checks == 0", "k < 0"}

// parts are what is taken out of the learner, one at a time.
var parts = []struct {
	part, change string
	edits        []edit
}{
	{"r", "r = 0: waiting is worth nothing", []edit{{options, `Critic: "lspe"`, `Critic: "zero"`}}},
	{"", "the averages η and κ̄ without r", []edit{{options, `Critic: "lspe"`, `Critic: "average"`}}},
	{"", "−r", []edit{{options, `Critic: "lspe"`, `Critic: "negative"`}}},
	{"Sherman and Morrison", "left out: P grows from εI, and is not looked at", []edit{
		unchecked, {inverses, "by := w / (1 + w*lev)", "by := 0 * w * lev"},
	}},
	{"", "only the diagonal of P is updated", []edit{unchecked, {inverses, "\t\t\tp[k] -= v * u[j]\n",
		"\t\t\tif i == j {\n\t\t\t\tp[k] -= v * u[j]\n\t\t\t}\n"}}},
	{"Tikhonov", "P is never looked at", []edit{unchecked}},
	{"policy gradient", "left out: thresholds of the cold start", []edit{
		{options, `Actor: "gradient"`, `Actor: "off"`},
	}},
	{"", "its sign turned", []edit{{actors, "math.Exp(-step*excess)", "math.Exp(step*excess)"}}},
	{"price λ", "0", []edit{{options, `Price: "learned"`, `Price: "off"`}}},
	{"projection Π", "θ from 10⁻³ to 10⁷, any step", []edit{
		{actors, "theta = min(max(theta, last/maxThetaStep), last*maxThetaStep)", "theta += 0 * last"},
		{actors, "min(max(1, theta), l.most())", "min(max(1e-3, theta), 1e7)"},
	}},
	{"time scales", "reversed: b ∝ n^−.95, a ∝ n^−.9, d ∝ n^−.8", []edit{
		{options, "Power: .8}", "Power: .95}"},
		{options, "{Scale: 1.7, Block: 1, Power: .95", "{Scale: 1.1, Block: 1, Power: .8"},
	}},
	{"", "r slower than θ and λ: γ = .0002", []edit{{options, "Gamma: 1,", "Gamma: 2e-4,"}}},
	{"polynomials", "degree 2", []edit{{options, "Features: 3", "Features: 2"}}},
	{"", "degree 1", []edit{{options, "Features: 3", "Features: 1"}}},
	{"cold start", "θ = R and λ = 0 after the first pass", []edit{
		{"coldstart.go", "l.price = l.clearing()", "l.price = 0"},
		{"coldstart.go", "l.pooled.threshold(l.priced(i, l.price)*l.cost(i), level)", "l.round+0*level"},
	}},
	{"pooled curve", "H̄ is the mean of the first pass", []edit{
		{"pooled.go", "p.beta[k] = max(0, slope) - held", "p.beta[k] = 0 * slope"},
	}},
	{"prior of a source", "left out: no pseudo-cycles", []edit{
		{"between.go", "max(items/(items+1), first/(first+float64(s.Cycles)))", "0 * items * first"},
	}},
	{"", "counts three cycles, however few items a harvest has", []edit{
		{numbers, "priorItems     = .5", "priorItems = 0."}, {numbers, "firstItems     = 100.", "firstItems = 0."},
	}},
	{"", "counts no more at first", []edit{{numbers, "firstItems     = 100.", "firstItems = 0."}}},
	{"", "counts as much where sources are alike", []edit{{numbers, "alikeSlopes    = .01", "alikeSlopes = 0."}}},
	{"", "counts as much in long waits where crawls are free", []edit{
		{numbers, "pooledRounds   = 2.", "pooledRounds = 1e9"},
	}},
	{"", "is as steep as the pooled curve", []edit{
		{"between.go", "return k * float64(s.Score) / (k*float64(s.Square) + 1/l.slopes())", "return 0 * k"},
	}},
	{"", "its ages may be the same", []edit{{critics, "max(last+1, ", "max(1, "}}},
	{"", "as if all slopes varied by .05, whatever is found", []edit{
		{numbers, "slopeInfo      = 30.", "slopeInfo = 1e15"},
	}},
	{"", "levels are not drawn together", []edit{{numbers, "levelSpread    = 1.", "levelSpread = 1e12"}}},
	{"", "the mean level counts only as far as levels are alike", []edit{
		{numbers, "levelPrior     = .5", "levelPrior = 1e-9"},
	}},
	{"long cycles", "are not cut", []edit{{numbers, "longestCycle = 2.", "longestCycle = 1e9"}}},
	{"jumps", "none is found", []edit{{numbers, "alarm       = 8.", "alarm = 1e9"}}},
	{"", "however many, they say nothing of the others", []edit{{numbers, "worldShare  = .1", "worldShare = 1e9"}}},
	{"", "rare harvests count in full", []edit{{numbers, "rarest      = 10.", "rarest = 1e9"}}},
	{"wakes", "steps at crawls only", []edit{{numbers, "wakeStep      = .5", "wakeStep = 0."}}},
	{"κ", "6, and does not grow", []edit{{options, "KappaMax: 60", "KappaMax: 6"}}},
	{"", "grows with the cycles, however little they say", []edit{
		{numbers, "signalScale   = .3", "signalScale = 1e9"},
	}},
	{"budget to spare", "nobody is crawled before being due", []edit{
		{schedules, "price+w.Slope*late < 0 {", "price < 0 || late < 0 {"},
	}},
	{"due sources", "none wakes while twice the budget waits", []edit{
		{schedules, "s.ring.Next() <= o.Epoch || cost", "cost"},
	}},
	{"negative index", "each source that has woken may be crawled", []edit{
		{schedules, "price+w.Slope*late < 0 {", "price < 0 {"},
	}},
	{"thresholds below 1½", "W is what the critic says", []edit{
		{actors, "w += mean * math.Log(s.Theta/second)", "w += 0 * mean * second"},
	}},
	{"", "a cycle has θ epochs in the plan", []edit{
		{actors, "theta = 1 + 1/(1+math.Pow(second/theta, mostSlope))", "theta += 0 * mostSlope"},
	}},
	{"where crawls are free", "κ as elsewhere", []edit{{numbers, "freeSlope     = 10.", "freeSlope     = 16."}}},
	{"√(θ/R) in the step", "left out", []edit{{actors, "max(1, math.Sqrt(s.Theta/l.round))", "1"}}},
	{"evidence", "a longer wait at a price of 0 needs none", []edit{{numbers, "evidence      = 2.", "evidence = 0."}}},
	{"", "a wait beyond four rounds needs none", []edit{{numbers, "farEvidence   = 1.", "farEvidence = 0."}}},
	{"", "its sign turned, both", []edit{
		{numbers, "evidence      = 2.", "evidence = -2."}, {numbers, "farEvidence   = 1.", "farEvidence = -1."},
	}},
	{"cycles of one epoch", "count in the wait block, too", []edit{
		{"source.go", "\tif age == 1 {\n\t\ts.Ones += b\n\t}\n", ""},
		{"source.go", "\tif age == 1 {\n\t\treturn\n\t}\n", ""},
	}},
}

// partWorlds are the worlds in which they are taken out, by their names among targets.
var partWorlds = []string{"rates about 1", "rates about .1", "ten, budget 10", "ten, budget 5",
	"ten, budget 2", "mixture", "mixture, 40", "reshuffled", "exponential", "hump", "two humps, budget 1", inRandom}

// inRandom stands for 300 random worlds whose best waits are not long.
const inRandom = "random worlds"

// TestParts: each part that docs/lspe.md measures is where the table says. With -full it takes
// out one after the other, plays the learner without it on ten instances from -from on, and prints
// what that loses.
func TestParts(t *testing.T) {
	if *without != "" {
		envtest.Alone(t)
		data, err := json.Marshal(playParts(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*without, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	overlays := make([]string, len(parts))
	for k, p := range parts {
		overlays[k] = overlay(t, filepath.Join(dir, fmt.Sprint(k)), p.edits)
	}
	if !*full {
		return
	}
	// earned returns what the learner earns in which files are replaced.
	earned := func(t *testing.T, dir, overlay string) (got map[string][][2]float64) {
		file := filepath.Join(dir, "earned.json")
		cmd := exec.Command("go", "test", "-timeout", "2h", "-run", "^TestParts$", "-overlay", overlay, ".",
			"-without", file, "-from", fmt.Sprint(*from), "-world", *only)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	whole := playParts(t)
	found := make([]map[string][][2]float64, len(parts))
	t.Run("parts", func(t *testing.T) {
		for k, p := range parts {
			t.Run(p.part+", "+p.change, func(t *testing.T) {
				t.Parallel()
				found[k] = earned(t, t.TempDir(), overlays[k])
			})
		}
	})
	head, all := "| part | changed to", "| all parts |"
	for _, name := range partWorlds {
		if w, is := whole[name]; is {
			var mean [2]float64
			for _, s := range w {
				mean[0], mean[1] = mean[0]+s[0]/float64(len(w)), mean[1]+s[1]/float64(len(w))
			}
			head, all = head+" | "+name, all+fmt.Sprintf(" | %.4f, %.4f", mean[0], mean[1])
		}
	}
	fmt.Println(head + " |")
	fmt.Println(all + " |")
	for k, p := range parts {
		line := "| " + p.part + " | " + p.change
		for _, name := range partWorlds {
			if w, is := whole[name]; is && found[k] != nil {
				var frozen, learning []float64
				for n, s := range found[k][name] {
					frozen, learning = append(frozen, s[0]-w[n][0]), append(learning, s[1]-w[n][1])
				}
				line += " | " + difference(frozen) + "; " + difference(learning)
			}
		}
		fmt.Println(line + " |")
	}
}

// playParts returns what is earned in each world, by instance: as learned, and while learning. In
// random worlds, where the whole run may be too short to say what Whittle earns, 1 is the most.
func playParts(t *testing.T) map[string][][2]float64 {
	got := map[string][][2]float64{}
	const epochs = 3000
	if strings.Contains(inRandom, *only) {
		for w := range randomWorlds(*from, 300, epochs) {
			if !w.far {
				one := against(t, w.best, w.in, w.seed, epochs, 0, nil)
				got[inRandom] = append(got[inRandom], [2]float64{min(1, one.frozen), min(1, one.learning)})
			}
		}
	}
	for _, c := range targets {
		for _, name := range partWorlds {
			if c.name != name || !strings.Contains(name, *only) {
				continue
			}
			change := 0
			if c.change {
				change = epochs / 2
			}
			for k := range c.instances {
				seed := *from + uint64(k)
				one := play(t, c.instance(seed), seed, epochs, change, nil)
				got[name] = append(got[name], [2]float64{one.frozen, one.learning})
			}
		}
	}
	return got
}

// overlay writes the edited files, and what go test takes for -overlay. Each text has to stand
// once in its file, and what is written has to be Go.
func overlay(t *testing.T, dir string, edits []edit) string {
	t.Helper()
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, e := range edits {
		if _, is := texts[e.file]; !is {
			data, err := os.ReadFile(e.file)
			if err != nil {
				t.Fatal(err)
			}
			texts[e.file] = string(data)
		}
		if n := strings.Count(texts[e.file], e.text); n != 1 {
			t.Errorf("%q stands %d times in %s; want once", e.text, n, e.file)
		}
		texts[e.file] = strings.Replace(texts[e.file], e.text, e.by, 1)
	}
	var replace struct{ Replace map[string]string }
	replace.Replace = map[string]string{}
	for file, text := range texts {
		if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
			t.Error(err)
		}
		whole, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		edited := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(edited, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		replace.Replace[whole] = edited
	}
	data, err := json.Marshal(replace)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// difference returns a mean and two of its standard errors, in 10⁻⁴, bold where it exceeds them.
func difference(v []float64) string {
	mean, sd := stat.MeanStdDev(v, nil)
	mean, sd = math.Round(1e4*mean), math.Round(2e4*sd/math.Sqrt(float64(len(v))))
	if mean == 0 && sd == 0 {
		return "0"
	}
	text := strings.ReplaceAll(fmt.Sprintf("%+.0f ± %.0f", mean, sd), "-", "−")
	if math.Abs(mean) > sd {
		return "**" + text + "**"
	}
	return text
}
