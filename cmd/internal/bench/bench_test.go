package bench

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/clitest"
	"ephemera/experiments/result"
)

// bench runs the command, with knowledge model unless another is given, and returns
// what it prints.
func bench(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	if !slices.Contains(args, "-preset") {
		args = append([]string{"-knowledge", "model"}, args...)
	}
	return clitest.Call(t, Run, args...)
}

// report runs the command and reads what it prints as JSON: the policies in its
// order, and their rows.
func report(t *testing.T, args ...string) (r result.Report, policies []string, byName map[string]result.Row) {
	t.Helper()
	out, log, err := bench(t, append(args, "-format", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	if log != "" {
		t.Errorf("stderr is %q; off a terminal nothing is shown", log)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	byName = map[string]result.Row{}
	for _, row := range r.Results {
		policies = append(policies, row.Policy)
		byName[row.Policy] = row
	}
	return r, policies, byName
}

func TestJSON(t *testing.T) {
	r, policies, byName := report(t, "-steps", "500", "-seeds", "6")
	if r.Steps != 500 || r.Seeds != 6 || r.Seed != 1 || r.Instance != "paper" ||
		r.Algorithm != "paper" || r.Knowledge != "model" || r.Bound.IsZero() {
		t.Errorf("ran %+v", r)
	}
	for _, name := range []string{
		"learning", "learned", "whittle", "optimum", "lagrangian", "relaxed", "greedy", "myopic",
		"static-even", "round-robin", "best-source",
	} {
		row, ok := byName[name]
		switch {
		case !ok:
			t.Errorf("%s is missing from %v", name, policies)
		case !row.Lo.IsZero() != strings.HasPrefix(name, "learn") || row.Diff.IsZero() ||
			row.Worst.IsZero() || !(row.Crawls > 0) || !(row.OfWhittle.Value() > 0) ||
			!(row.OfBound.Value() > 0):
			t.Errorf("%+v", row)
		case !row.Lo.IsZero() && !(row.Lo.Value() <= row.Reward*(1+1e-12) && row.Reward <= row.Hi.Value()*(1+1e-12)):
			t.Errorf("%s: %v is not between %v and %v", name, row.Reward, row.Lo.Value(), row.Hi.Value())
		}
	}
}

func TestPolicies(t *testing.T) {
	_, policies, _ := report(t, "-steps", "200", "-seeds", "2", "-policies", "whittle, round-robin")
	if got := strings.Join(policies, " "); got != "whittle round-robin" {
		t.Errorf("policies are %q", got)
	}
	_, policies, _ = report(t, "-steps", "200", "-seeds", "2", "-policies", "learned,whittle,learning")
	if slices.Sort(policies); !slices.Equal(policies, []string{"learned", "learning", "whittle"}) {
		t.Errorf("policies are %q", policies)
	}
}

// A setting acts on every compared policy that has it.
func TestSettings(t *testing.T) {
	learned := func(kappa string) (float64, float64) {
		_, _, byName := report(t, "-steps", "300", "-seeds", "1",
			"-policies", "learned,paper,whittle", "-set", "kappa="+kappa)
		return byName["learning"].Reward, byName["paper/learning"].Reward
	}
	default1, paper1 := learned("0.5")
	default2, paper2 := learned("8")
	if default1 == default2 || paper1 == paper2 {
		t.Errorf("κ = 0.5 and κ = 8 earn %v and %v, of paper %v and %v", default1, default2, paper1, paper2)
	}
}

// What train has learned is a policy like others.
func TestSavedPolicy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	out, err := exec.Command("go", "run", "ephemera/cmd/train", "-steps", "500", "-out", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, _, byName := report(t, "-steps", "500", "-seeds", "1",
		"-policies", "learned,whittle,file:"+dir, "-knowledge", "online")
	if got, want := byName["file:"+dir].Reward, byName["learned"].Reward; got != want || got == 0 {
		t.Errorf("what was learned there earns %v; here %v", got, want)
	}
	_, _, err = bench(t, "-instance", "lognormal:9", "-steps", "9", "-seeds", "1",
		"-policies", "file:"+dir, "-knowledge", "online")
	if cli.Status(err) != cli.Failure || !strings.Contains(err.Error(), "sources") {
		t.Errorf("on other sources: %v", err)
	}
	_, _, err = bench(t, "-policies", "file:"+t.TempDir())
	if cli.Status(err) != cli.Failure || !strings.Contains(err.Error(), "state.json") {
		t.Errorf("where nothing is: %v", err)
	}
}

func TestRandom(t *testing.T) {
	drawn := func(args string) (result.Report, []string, map[string]result.Row) {
		return report(t, strings.Fields("-random "+args)...)
	}
	r, _, byName := drawn("6,2,3 -steps 300 -seeds 2 -policies whittle,greedy,round-robin")
	if !strings.Contains(r.Instance, "lognormal/6/1") || !strings.Contains(r.Instance, "2 more") || r.Budget != 2 {
		t.Errorf("instance %q, budget %v", r.Instance, r.Budget)
	}
	robin := byName["round-robin"]
	if byName["whittle"].OfWhittle.Value() != 1 ||
		!(robin.Worst.Value() > 0 && robin.Worst.Value() <= robin.OfWhittle.Value()) {
		t.Errorf("shares of Whittle: %+v", byName)
	}
	other, _, _ := drawn("6,2,3 -seed 9001 -steps 300 -seeds 2 -policies whittle")
	if !strings.HasPrefix(other.Instance, "lognormal/6/9001 and 2 more") || other.Bound.Value() == r.Bound.Value() {
		t.Errorf("with another -seed: instance %q, bound %v and before %v",
			other.Instance, other.Bound.Value(), r.Bound.Value())
	}
	r, _, _ = drawn("wide:5,1,2 -steps 100 -seeds 1 -policies whittle")
	if !strings.HasPrefix(r.Instance, "wide/5/1") {
		t.Errorf("instance is %q", r.Instance)
	}
}

func TestOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"-steps", "200", "-seeds", "2", "-policies", "whittle,greedy", "-out", dir}
	out, _, err := bench(t, append(args, "-format", "markdown")...)
	if err != nil {
		t.Fatal(err)
	}
	files := clitest.Files(t, dir)
	for _, name := range []string{"result.json", "result.md", "runs.csv", "command.txt"} {
		if _, ok := files[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	var r map[string]any
	if err := json.Unmarshal([]byte(files["result.json"]), &r); err != nil || r["results"] == nil {
		t.Errorf("result.json: %v, %v", r, err)
	}
	if !strings.Contains(files["result.md"], "| whittle") || !strings.Contains(out, "| whittle") {
		t.Errorf("result.md is\n%s", files["result.md"])
	}
	if got := strings.Count(files["runs.csv"], "\n"); got != 5 {
		t.Errorf("runs.csv has %d lines, want a heading and 4 runs", got)
	}
}

// The results of one command do not stay next to the command line of another, of which runs are left: a report
// would show them as what that command gave.
func TestResultsOfAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	call := func(more ...string) map[string]string {
		args := append([]string{"-steps", "200", "-policies", "whittle,greedy", "-out", dir}, more...)
		if _, _, err := bench(t, args...); err != nil {
			t.Fatal(err)
		}
		return clitest.Files(t, dir)
	}
	first := call("-seeds", "2")
	left := call("-seeds", "4", "-shard", "0/2")
	for _, name := range []string{"result.json", "result.md", "runs.csv"} {
		if first[name] == "" || left[name] != "" {
			t.Errorf("%s has %d bytes, and then %d; allowed are none", name, len(first[name]), len(left[name]))
		}
	}
	if again := call("-seeds", "2"); again["result.json"] != first["result.json"] {
		t.Error("the first command prints something else now")
	}
}

// Shards of a comparison in one directory leave what one process leaves, and the
// last prints what it prints. What is done is not done again.
func TestShards(t *testing.T) {
	args := []string{"-steps", "200", "-seeds", "3", "-policies", "learned,whittle,q-whittle", "-format", "csv"}
	whole, parts := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parts")
	want, _, err := bench(t, append(args, "-out", whole)...)
	if err != nil {
		t.Fatal(err)
	}
	for k, shard := range []string{"1/2", "0/2"} {
		flag := [][]string{{"--shard=" + shard}, {"-shard", shard}}[k]
		got, log, err := bench(t, slices.Concat(args, flag, []string{"-out", parts})...)
		if err != nil || (k == 0) != (got == "") || k == 1 && got != want ||
			k == 0 && !strings.Contains(log, "shard 1/2 is done") {
			t.Errorf("shard %s: %v, printed %q, %q", shard, err, got, log)
		}
		if text := clitest.Files(t, parts)["command.txt"]; !strings.HasSuffix(text, " -format csv -out "+parts+"\n") {
			t.Errorf("shard %s: the command is %q; want that of all shards", shard, text)
		}
	}
	result := func(dir string) map[string]string {
		files := clitest.Files(t, dir)
		maps.DeleteFunc(files, func(name, _ string) bool { return name == "command.txt" || name == "timing.json" })
		return files
	}
	if got, want := result(parts), result(whole); !maps.Equal(got, want) || len(got) != 4+9 {
		t.Errorf("%d files, want %d that are the same", len(got), len(want))
	}
	if again, _, err := bench(t, append(args, "-out", whole, "-shard", "5/7")...); err != nil || again != want {
		t.Errorf("where all is done: %v, %q", err, again)
	}
}

func TestBadInput(t *testing.T) {
	refuse := clitest.Refuses(t, "bench", Run)
	refuse("extra", cli.Usage, "extra")
	refuse("-seeds 0", cli.Usage, "seeds", "0")
	refuse("-workers 0", cli.Usage, "workers", "0")
	refuse("-policies whittle -set kappa=3", cli.Usage, "a setting \"kappa\", nor any other; leave out -set")
	refuse("-random paper:4,1,3", cli.Usage, "-random", "family is \"paper\"; allowed are drift, hosts, lognormal")
	refuse("-law foo", cli.Usage, "law is \"foo\"; allowed are exponential")
	refuse("-policies magic", cli.Usage, "magic", "whittle", "learned")
	refuse("-policies nutch -knowledge model", cli.Usage,
		"nutch", "model", "what crawls bring back", "knowledge online")
	refuse("-policies stochastic -knowledge model", cli.Usage,
		"stochastic", "paper", "true state", "knowledge observed")
	refuse("-policies optimum -instance lognormal:20", cli.Usage, "optimum", "at most 4 sources, not 20")
	refuse("-policies optimum -world poisson", cli.Usage, "optimum", "mean dynamics")
	refuse("-instance pages:20 -knowledge observed", cli.Usage, "knowledge is observed; allowed in world pages are")
	refuse("-policies whittle,greedy -set kappa=2", cli.Usage, "kappa", "none")
	refuse("-policies paper,whittle -knowledge model -set colour=red", cli.Usage, "colour")
	refuse("-random 5,0,2", cli.Usage, "5,0,2")
	refuse("-random 5,inf,2", cli.Usage, "5,inf,2")
	refuse("-random 5", cli.Usage, "random", "N,M,count")
	refuse("-random 5,9,2", cli.Usage, "budget", "9", "5")
	refuse("-random odd:5,1,2", cli.Usage, "odd")
	refuse("-random 5,1,2 -instance paper", cli.Usage, "random", "instance")
	refuse("-preset books", cli.Usage, "books", "papers")
	refuse("-preset papers -policies whittle", cli.Usage, "papers", "policies")
	refuse("-preset papers -shard 2/2", cli.Usage, "shard", "2/2")
}

func TestPresetPapers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "figures")
	args := []string{"-preset", "papers", "-seeds", "2", "-steps", "200", "-format", "json", "-out", dir}
	one, log, err := bench(t, append(args, "-workers", "1")...)
	if err != nil {
		t.Fatal(err)
	}
	if log != "" {
		t.Errorf("stderr is %q; off a terminal nothing is shown", log)
	}
	var r struct {
		Rows []map[string]any `json:"rows"`
	}
	if err := json.Unmarshal([]byte(one), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 29 {
		t.Errorf("%d rows; the four documents print 29 figures", len(r.Rows))
	}
	figures := clitest.Files(t, dir)
	if len(figures) != 4*3+5 {
		t.Errorf("%d files are written; want four figures as SVG, PNG and PDF, "+
			"two seeds, command, results and their table", len(figures))
	}
	if figures["papers.json"] != one {
		t.Error("papers.json is not what is printed as JSON")
	}
}

// By default a policy that cannot be built is left out and named; asked for by
// name, it is an error.
func TestUnbuiltPolicies(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "slow.toml")
	text := "budget = 1\n" + strings.Repeat("[[source]]\nname = \"NAME\"\nrate = 1\ndecay = 1e-7\ninterest = 1\n", 3)
	for _, name := range []string{"a", "b", "c"} {
		text = strings.Replace(text, "NAME", name, 1)
	}
	if err := os.WriteFile(slow, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-instance", slow, "-steps", "20", "-seeds", "1"}
	out, _, err := bench(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "optimum is left out: ") || strings.Contains(out, "\n optimum ") ||
		!strings.Contains(out, "\n whittle ") {
		t.Errorf("printed\n%s", out)
	}
	if _, _, err := bench(t, append(args, "-policies", "whittle,optimum")...); cli.Status(err) != cli.Failure {
		t.Errorf("optimum by name: %v", err)
	}
}

// A comparison that was killed and is taken up again says how fast the learner learned,
// and nothing is left of the files that were being written.
func TestKilledAndResumed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"-steps", "200", "-seeds", "2",
		"-policies", "learned,whittle", "-knowledge", "online", "-out", dir}
	if _, _, err := bench(t, args...); err != nil {
		t.Fatal(err)
	}
	var runs map[string][]string
	if err := json.Unmarshal([]byte(clitest.Files(t, dir)["runs.json"]), &runs); err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(dir, "runs", runs["learned"][1]+".json")
	for _, name := range []string{second, filepath.Join(dir, "timing.json"), filepath.Join(dir, "result.json")} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		second,
		filepath.Join(dir, "result.json"),
		filepath.Join(dir, "runs", runs["whittle"][0]+".json"),
	} {
		hidden := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-4711")
		if err := os.WriteFile(hidden, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := bench(t, args...); err != nil {
		t.Fatal(err)
	}
	files := clitest.Files(t, dir)
	if files["timing.json"] == "" {
		t.Error("timing.json is missing")
	}
	for name := range files {
		if strings.HasPrefix(filepath.Base(name), ".") {
			t.Errorf("%s is left", name)
		}
	}
}

// Where a file of -out cannot be written the figures are printed all the same.
func TestUnwritableOut(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "papers.md", "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	out, _, err := bench(t, "-preset", "papers", "-seeds", "1", "-steps", "50", "-out", dir)
	if err == nil || cli.Status(err) != cli.Failure || !strings.Contains(err.Error(), "papers.md") ||
		!strings.Contains(out, "allerton/whittle") {
		t.Errorf("%v; printed %q", err, out)
	}
}
