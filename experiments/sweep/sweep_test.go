package sweep

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/experiments/configs"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
	"ephemera/internal/files"
)

// childEnv turns the test binary into a sweep process: directory and shard.
const childEnv = "EPHEMERA_SWEEP_CHILD"

func TestMain(m *testing.M) {
	dir, shard, isChild := strings.Cut(os.Getenv(childEnv), "|")
	if !isChild {
		os.Exit(m.Run())
	}
	b := experiments.Batch{Dir: dir, Workers: 2}
	c, err := Load(context.Background(), "life.toml", []byte(lifeTOML), nil)
	if err == nil && shard != "" {
		b.Shard, err = experiments.ParseShard(shard)
	}
	if err == nil {
		_, err = Run(context.Background(), c, b)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const lifeTOML = `
question = "Lives?"
seeds = 10
steps = 1000
learner.algorithm = "paper"
learner.kappa = [1, 2, 3, 4, 5, 6, 7, 8]
instance.budget = [1, 2]
`

func load(t testing.TB, text string, set ...string) *Config {
	t.Helper()
	c, err := Load(context.Background(), "test.toml", []byte(text), set)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// perform runs a sweep into a directory.
func perform(t testing.TB, c *Config, dir string, workers int, shard experiments.Shard) *Summary {
	t.Helper()
	rep, err := Run(context.Background(), c, experiments.Batch{Dir: dir, Workers: workers, Shard: shard})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// finals returns the files of a sweep, but for its runs.
func finals(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"runs.csv", "curves.csv", "learned.csv", SummaryFile, "summary.csv", "summary.md"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(data)
	}
	return all
}

// A sweep whose processes are killed at any moment, alone or four shards at once,
// and which is then left alone, leaves the bytes of one that was never disturbed.
func TestKill(t *testing.T) {
	undisturbed := t.TempDir()
	c, err := Load(context.Background(), "life.toml", []byte(lifeTOML), nil)
	if err != nil {
		t.Fatal(err)
	}
	perform(t, c, undisturbed, 1, experiments.Shard{})
	want := finals(t, undisturbed)
	dir := t.TempDir()
	start := func(shard string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+dir+"|"+shard)
		cmd.Stderr = &bytes.Buffer{}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	rng := rand.New(stream.New(1, stream.Test, 50))
	killed := 0
	for k := range 12 {
		shards := []string{""}
		if k%2 == 1 {
			shards = []string{"0/4", "1/4", "2/4", "3/4"}
		}
		var processes []*exec.Cmd
		for _, shard := range shards {
			processes = append(processes, start(shard))
		}
		time.Sleep(time.Duration(rng.IntN(60_000)) * time.Microsecond)
		for _, p := range processes {
			p.Process.Kill()
		}
		for _, p := range processes {
			if err := p.Wait(); err != nil && p.ProcessState.Exited() {
				t.Fatalf("a process ended by itself: %v: %s", err, p.Stderr)
			} else if err != nil {
				killed++
			}
		}
	}
	last := start("")
	if err := last.Wait(); err != nil {
		t.Fatalf("%v: %s", err, last.Stderr)
	}
	if got := finals(t, dir); !reflect.DeepEqual(got, want) {
		t.Error("other bytes than undisturbed")
	}
	if killed < 6 {
		t.Errorf("only %d processes were killed at work", killed)
	}
}

// Cells are the products of lists, named by what tells them apart; what a flag
// sets holds for all of them.
func TestCells(t *testing.T) {
	ids := func(c *Config) (ids []string) {
		for _, cell := range c.Cells {
			ids = append(ids, cell.ID)
		}
		return ids
	}
	for _, x := range []struct {
		text string
		set  []string
		want []string
	}{
		{"learner.algorithm = \"paper\"\nlearner.kappa = [1, 2]\ninstance.budget = [1, 3]\n", nil,
			[]string{"budget/1/kappa/1", "budget/1/kappa/2", "budget/3/kappa/1", "budget/3/kappa/2"}},
		{"learner.algorithm = [\"paper\", \"greedy\"]\nlearner.kappa = [1, 2]\n", nil,
			[]string{"paper/kappa/1", "paper/kappa/2", "greedy"}},
		// What follows the reading tells no cells apart, unless it is given.
		{"learner.algorithm = \"paper\"\nlearner.reading = [\"printed\", \"ages\"]\n", nil,
			[]string{"reading/printed", "reading/ages"}},
		{`learner.algorithm = "paper"
[[cells]]
learner.reading = ["printed", "ages"]
[[cells]]
learner.act = "budget"
`, nil, []string{"reading/printed", "reading/ages", "act/budget"}},
		{"", []string{"learner.algorithm=[whittle, greedy]"}, []string{"whittle", "greedy"}},
		{`learner.algorithm = "paper"
[[cells]]
learner.kappa = 1
[[cells]]
learner.gamma = 0.1
`, []string{"learner.kappa=[3,4]"}, []string{"kappa/3", "kappa/4", "kappa/3/gamma/0.1", "kappa/4/gamma/0.1"}},
		{"learner.algorithm = \"paper\"\nlearner.a = [\"0.5,500,1\", \"1/(n+1)\"]", nil,
			[]string{"a/0.5,500,1", "a/1_(n+1)"}},
	} {
		if got := ids(load(t, x.text, x.set...)); !slices.Equal(got, x.want) {
			t.Errorf("%s %v: cells %q, want %q", x.text, x.set, got, x.want)
		}
	}
	// A number is a word where a word is needed.
	c := load(t, "learner.algorithm = \"paper\"\n", "learner.act=budget", "seeds=2", "show=[fallbacks]", "steps=1e3")
	r := c.Jobs()[1]
	if r.Seed != 2 || r.Steps != 1000 || r.Learner["act"] != "budget" || !slices.Equal(c.Show, []string{"fallbacks"}) {
		t.Errorf("%+v, shows %v", r, c.Show)
	}
	// A flag may take the cell away that the file compares the others with.
	text := "reference = \"kappa/2\"\nlearner.algorithm = \"paper\"\nlearner.kappa = [1, 2]\n"
	if c := load(t, text, "learner.kappa=[3, 4]"); c.Reference != "kappa/3" {
		t.Errorf("the reference is %q", c.Reference)
	}
	c = load(t, `[[cells]]
label = "as printed"
learner.algorithm = "paper"
[[cells]]
label = "policy"
learner.algorithm = ["greedy", "myopic"]
`)
	if c.Cells[0].Label != "as printed" || c.Cells[2].Label != "policy, myopic" {
		t.Errorf("labels %q and %q", c.Cells[0].Label, c.Cells[2].Label)
	}
}

// Every configuration of the project can be loaded.
func TestConfigurations(t *testing.T) {
	for _, name := range configs.Names() {
		text, err := configs.Files.ReadFile(name + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		if c := load(t, string(text)); len(c.Cells) < 2 || c.Question == "" {
			t.Errorf("%s: %d cells, question %q", name, len(c.Cells), c.Question)
		}
	}
}

// A byte order mark, which some editors put before the text, is no mistake.
func TestByteOrderMark(t *testing.T) {
	load(t, "\ufefflearner.kappa = 4\nlearner.algorithm = \"paper\"\n")
}

// An error says where, what was found and what is allowed.
func TestRefuses(t *testing.T) {
	for _, x := range []struct{ text, set, want string }{
		{"seeds = ", "", "test.toml:1:8"},
		{"colour = 1", "", "test.toml:1:1: key \"colour\": unknown key; allowed are question"},
		{"[[cells]]\nseeds = 3", "", "test.toml:2:1: key \"cells.seeds\": unknown key"},
		{"metric = 3", "", "test.toml:1:10"},
		{"metric = \"gold\"", "", "\"gold\"; allowed are learned_ratio"},
		{"show = [\"gold\"]", "", "\"gold\"; allowed are learned_ratio"},
		{"reference = \"gold\"\nlearner.algorithm=[\"whittle\", \"greedy\"]", "", "allowed are whittle, greedy"},
		{"seeds = 0", "", "seeds is 0; allowed is"},
		{"seeds = 1.5", "", "test.toml:1:9: key \"seeds\": cannot decode TOML float; needed is a whole number"},
		{"learner.algorithm = \"gold\"", "", "allowed are lspe"},
		{"learner.algorithm = \"greedy\"\nlearner.kappa = 2", "", "learner.kappa is not a setting of any cell here"},
		{"learner.kappa = []", "", "learner.kappa is an empty list; allowed is 1 value or more"},
		{"learner.algorithm = []", "", "learner.algorithm is an empty list; allowed is 1 value or more"},
		{"learner.kappa = [2, 2]", "", "learner.kappa has 2 twice; each value is allowed once"},
		{"[[cells]]\n[[cells]]", "", "cell lspe is there twice"},
		{
			"[[cells]]\nlabel = \"a\"\nlearner.algorithm = \"whittle\"\n[[cells]]\nlabel = \"a\"", "",
			"label a is there twice",
		},
		{"# left empty\nseeds = 3", "", "test.toml: there is no setting of a run; needed is one at least"},
		{"learner.algorithm = \"paper\"\nlearner.kappa = \"steep\"", "",
			"setting \"kappa\" of paper is steep: a number is needed"},
		{"learner.algorithm = \"paper\"\nlearner.act = 2", "", "act is \"2\""},
		{"instance.name = \"none.toml\"", "", "none.toml"},
		{"steps = [10, 0]", "", "1 epoch or more"},
		{"learner.algorithm=[\"whittle\", \"greedy\"]", "reference=gold", "\"gold\"; allowed are whittle, greedy"},
		{
			"reference = \"gold\"\nlearner.algorithm=[\"whittle\", \"greedy\"]", "steps=20",
			"allowed are whittle, greedy",
		},
		{"", "learner.kappa", "want key=value"},
		{"", "colour=red", "-set colour=red:1:1: key \"colour\": unknown key"},
		{"", "steps=soon", "a whole number is needed"},
	} {
		var set []string
		if x.set != "" {
			set = []string{x.set}
		}
		_, err := Load(context.Background(), "test.toml", []byte(x.text), set)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q, -set %q: %v; want %q", x.text, x.set, err, x.want)
		}
	}
}

// records returns a record per run in which the cell decides the reward.
func records(
	c *Config, reward func(cell int, seed uint64) float64, over func(cell int) float64,
) *experiments.Performed[experiments.Record] {
	done := &experiments.Performed[experiments.Record]{}
	for i, r := range c.Jobs() {
		cell := i / c.Seeds
		rec := &experiments.Record{Run: r.Run}
		rec.Learning.Reward, rec.Learning.Over = reward(cell, r.Seed), over(cell)
		done.Records, done.Errors = append(done.Records, rec), append(done.Errors, nil)
	}
	return done
}

// A winner is named of the cells that keep the budget.
func TestVerdict(t *testing.T) {
	c := load(t, "seeds = 8\nmetric = \"learning_reward\"\nlearner.algorithm = \"paper\"\nlearner.kappa = [1, 2, 3]\n")
	reward := func(cell int, seed uint64) float64 {
		return 5*float64(cell) + stream.New(seed, stream.Test, uint64(cell)).Float64()
	}
	over := func(cell int) float64 { return float64(cell / 2) }
	rep, err := Summarize(c, records(c, reward, over), experiments.Batch{Dir: t.TempDir(), Workers: 1})
	if err != nil || rep.Verdict != "The best by learning_reward is kappa/2, before kappa/1." {
		t.Errorf("%v: %q", err, rep.Verdict)
	}
	// Cells that solve different problems have no winner.
	c = load(t, "seeds = 8\nlearner.algorithm = \"paper\"\ninstance.budget = [1, 2]\n")
	rep, err = Summarize(c, records(c, reward, over), experiments.Batch{Dir: t.TempDir(), Workers: 1})
	if err != nil || rep.Verdict != "" || rep.Cells[1].Diff != nil {
		t.Errorf("%v: verdict %q, difference %v", err, rep.Verdict, rep.Cells[1].Diff)
	}
}

// A summary says so where its cells play in different worlds, which is the default where
// what they know differs.
func TestWorldsOfCells(t *testing.T) {
	zero := func(int, uint64) float64 { return 0 }
	for _, x := range []struct{ world, want string }{
		{"", "In world mean: whittle. In world poisson: the other cells. " +
			"Between two worlds a difference is not of the policies alone; world.kind names one for all."},
		{"world.kind = \"poisson\"\n", ""},
	} {
		c := load(t, "seeds = 1\n"+x.world+"learner.algorithm = [\"lspe\", \"whittle\", \"certainty\"]\n")
		done := records(c, zero, func(int) float64 { return 0 })
		rep, err := Summarize(c, done, experiments.Batch{Dir: t.TempDir(), Workers: 1})
		if err != nil || strings.Join(rep.Notes, " ") != x.want {
			t.Errorf("%q: %v, notes %q; want %q", x.world, err, rep.Notes, x.want)
		}
	}
}

// The summary's estimates are those of the figures of the runs, cells are paired by
// seed, and a terminal of 120 columns holds every line of its table.
func TestSummary(t *testing.T) {
	c := load(t, `seeds = 6
metric = "learning_reward"
reference = "kappa/2"
learner.algorithm = "paper"
learner.kappa = [1, 2, 4]
show = ["learning_reward", "learning_crawls", "learned_reward", "whittle_reward", "over_budget", "fallbacks"]
`)
	reward := func(cell int, seed uint64) float64 { return float64(10*cell) + 1/float64(seed) }
	dir := t.TempDir()
	done := records(c, reward, func(cell int) float64 { return float64(cell/2) / 4 })
	rep, err := Summarize(c, done, experiments.Batch{Dir: dir, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	back, err := files.ReadJSON[Summary](filepath.Join(dir, SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	m := back.Column("learning_reward")
	var x []float64
	for seed := range uint64(6) {
		x = append(x, reward(2, seed+1))
	}
	got, want := back.Cells[2].Mean[m], stats.EstimateMean(x)
	if got.Lo != want.Lo || got.Hi != want.Hi || math.Abs(got.Value-want.Value) > 1e-12 {
		t.Errorf("mean %+v, want %+v", got, want)
	}
	if d := back.Cells[2].Diff; math.Abs(d.Value-10) > 1e-12 || back.Cells[1].Diff != nil {
		t.Errorf("the difference to the reference is %+v", d)
	}
	if p := back.Cells[1].Profile; len(p) != len(back.Scores) || p[0].Value != 1 || p[len(p)-1].Value != 0 {
		t.Errorf("profile %+v", p)
	}
	if !back.Cells[2].Over || back.Cells[1].Over {
		t.Error("the mark of the cell that breaks the budget is wrong")
	}
	var text, md strings.Builder
	if err := result.Print(&text, rep, result.Text); err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(text.String(), "\n\n")
	for line := range strings.Lines(table) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 120 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	if !strings.Contains(text.String(), "kappa/4 *") ||
		!strings.Contains(text.String(), "Left out for want of room: ") {
		t.Errorf("text\n%s", &text)
	}
	err = result.Print(&md, rep, result.Markdown)
	if err != nil || !strings.Contains(md.String(), "IQM of learning_reward") {
		t.Errorf("%v\n%s", err, &md)
	}
}

// A cell that names no learner has the one that train and bench take in its world.
func TestLearnerOfACell(t *testing.T) {
	c := load(t, `
steps = 10
instance.name = ["paper", "pages:5"]
instance.budget = [1, 2]`)
	want := []string{
		"lspe/name/paper/budget/1", "lspe/name/paper/budget/2",
		"forecast/name/pages:5/budget/1", "forecast/name/pages:5/budget/2",
	}
	for i, cell := range c.Cells {
		if len(c.Cells) != len(want) || cell.ID != want[i] {
			t.Fatalf("cell %d of %d is %s; want %s", i+1, len(c.Cells), cell.ID, want)
		}
	}
	// Settings of a learner are those of the one that is taken.
	alone := load(t, "steps = 10\ninstance.objective = \"delay\"\nlearner.profile = [true, false]")
	if len(alone.Cells) != 2 || alone.Cells[1].Run.Algorithm() != "forecast" {
		t.Errorf("the cells are %+v; want two of forecast", alone.Cells)
	}
	_, err := Load(context.Background(), "test.toml", []byte("instance.name = \"pages:5\"\nlearner.kappa = 4"), nil)
	if err == nil || !strings.Contains(err.Error(), "learner.kappa is not a setting of any cell here") {
		t.Errorf("error %v; want that forecast has no kappa", err)
	}
}
