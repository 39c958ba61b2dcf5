package train

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ephemera/cmd/internal/bench"
	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/clitest"
	"ephemera/cmd/internal/sweep"
	"ephemera/experiments/result"
	"ephemera/learner"
)

func TestMain(m *testing.M) { clitest.Main(m, func() { cli.Main("train", Run) }) }

// train runs the command and returns what it prints.
func train(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return clitest.Call(t, Run, args...)
}

// process runs the command in a process of its own.
func process(t *testing.T, args ...string) (stdout string, status int) {
	t.Helper()
	return clitest.Output(t, clitest.Process(t, args...))
}

func TestJSON(t *testing.T) {
	out, log, err := train(t, "-steps", "2000", "-format", "json")
	if err != nil {
		t.Fatal(err)
	}
	if log != "" {
		t.Errorf("stderr is %q; off a terminal nothing is shown", log)
	}
	var r result.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	var policies []string
	for _, row := range r.Results {
		policies = append(policies, row.Policy)
		if !(row.Reward > 0) || !(row.Crawls > 0) ||
			row.OfWhittle.IsZero() || row.OfBound.IsZero() || !row.Lo.IsZero() {
			t.Errorf("%+v; one seed has no interval", row)
		}
	}
	want := "learning learned whittle greedy myopic round-robin best-source"
	if got := strings.Join(policies, " "); got != want {
		t.Errorf("policies are %q, want %q", got, want)
	}
}

func TestOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if _, _, err := train(t, "-steps", "500", "-out", dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"config.toml", "command.txt", "metrics.csv", "state.json", "result.json", "thresholds.csv", "timing.json",
	} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || len(b) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	b, _ := os.ReadFile(filepath.Join(dir, "config.toml"))
	if !strings.Contains(string(b), "[world]\nkind = 'poisson'\n") {
		t.Errorf("config.toml does not hold the world:\n%s", b)
	}
}

// lost is a learner whose state JSON cannot hold.
type lost struct{ learner.Learner }

func (lost) State() any { return math.NaN() }

func init() {
	k := learner.Kinds[slices.IndexFunc(learner.Kinds, func(k learner.Kind) bool { return k.Name == "lspe" })]
	build := k.New
	k.Name = "lost"
	k.New = func(g learner.Inputs, s any) (learner.Learner, error) {
		l, err := build(g, s)
		return lost{l}, err
	}
	learner.Register(k)
}

// Where the learner cannot be saved the figures are kept and printed all the same, and an error says why.
func TestStateThatCannotBeSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	out, _, err := train(t, "-steps", "100", "-algorithm", "lost", "-out", dir)
	want := "lost on paper, seed 1: the state of the learner cannot be saved: json: unsupported value: NaN"
	if err == nil || !strings.HasPrefix(err.Error(), want) || cli.Status(err) != cli.Failure {
		t.Errorf("%v; want %s", err, want)
	}
	files := clitest.Files(t, dir)
	if !strings.Contains(out, "\n learned ") || files["result.json"] == "" || files["config.toml"] == "" {
		t.Errorf("printed\n%s\nkept %v", out, slices.Sorted(maps.Keys(files)))
	}
}

// In a directory of other commands none of their results stays, which would be read with the new ones.
func TestOutOfOtherCommands(t *testing.T) {
	result := regexp.MustCompile(`^(result|metrics|thresholds|papers|summary|runs|curves|learned)\.(json|csv|md)$`)
	results := func(dir string) (names []string) {
		for name := range clitest.Files(t, dir) {
			if result.MatchString(name) && name != "runs.json" { // of which only train and bench take notice
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	shared := t.TempDir()
	for _, name := range []string{"summary.csv", "papers.md"} { // of somebody else, before there is anything of ours
		if err := os.WriteFile(filepath.Join(shared, name), []byte("mine\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := train(t, "-steps", "50", "-out", shared); err != nil {
		t.Fatal(err)
	}
	if got := clitest.Files(t, shared); got["summary.csv"] != "mine\n" || got["papers.md"] != "mine\n" {
		t.Errorf("files that no command has put are %q and %q", got["summary.csv"], got["papers.md"])
	}
	for _, c := range []struct {
		run  cli.Command
		args string
	}{
		{sweep.Run, "-set steps=50 -set seeds=1"},
		{Run, "-steps 50"},
		{bench.Run, "-steps 50 -seeds 2 -policies whittle"},
		{bench.Run, "-preset papers -steps 50 -seeds 1"},
		{Run, "-steps 50"},
		{sweep.Run, "-set steps=50 -set seeds=1"},
	} {
		alone := t.TempDir()
		for _, dir := range []string{alone, shared} {
			if _, _, err := clitest.Call(t, c.run, append(strings.Fields(c.args), "-out", dir)...); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := results(shared), results(alone); !slices.Equal(got, want) {
			t.Errorf("%s leaves %v, want %v", c.args, got, want)
		}
	}
}

// Where the world changes, what was learned stands next to the exact ages, gains and price of its end.
func TestExactOfTheEnd(t *testing.T) {
	const first, second = `budget = 1
[[source]]
name = "a"
rate = 1
decay = 1
interest = 1
[[source]]
name = "b"
rate = 2
decay = 1
interest = 1
`, `[[change]]
at = 100
[[change.source]]
name = "a"
rate = 50
`
	of := func(text string) (price, source string) {
		file := filepath.Join(t.TempDir(), "x.toml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, _, err := train(t, "-instance", file, "-steps", "300")
		if err != nil {
			t.Fatal(err)
		}
		_, price, _ = strings.Cut(out, "on average: ")
		price, _, _ = strings.Cut(price, "\n")
		gain := regexp.MustCompile(`(?m)^ a .* (\S+ +\S+)$`).FindStringSubmatch(out)
		if gain == nil || price == "" {
			t.Fatal(out)
		}
		return price, gain[1]
	}
	price, source := of(first + second)
	if p, s := of(strings.Replace(first, "rate = 1", "rate = 50", 1)); p != price || s != source {
		t.Errorf("price %s, gain and ceiling %s; want %s, %s", price, source, p, s)
	}
}

func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	unknownKey := file("key.toml", `id = "x"
budget = 1
[[source]]
name = "a"
rate = 1
decay = 1
interest = 1
colour = "red"
`)
	good := file("good.csv", "source,published_unix,utility\na,0,1\na,36000,1\n")
	rich := file("rich.toml", "budget = 1\n\n[[source]]\nname = \"a\"\nrate = 1e300\ndecay = 1\ninterest = 1\n")
	fails := file("fails.toml", `budget = 1
[[source]]
name = "a"
rate = 1
decay = 1
interest = 1
fails = 0.1
`)
	noColumn := file("column.csv", "source,when,utility\na,1,1\n")
	short := file("short.csv", "source,published_unix,utility\na,3600,1\na,3700,1\n")
	truncated := file("cut.csv.gz", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")

	refuse := clitest.Refuses(t, "train", Run)
	refuse("-nonsense", cli.Usage, "nonsense")
	refuse("extra", cli.Usage, "extra")
	refuse("-steps x", cli.Usage, "steps", "x")
	refuse("-trace "+good+" -split 1.5", cli.Usage, "split is 1.5", "below 1")
	refuse("-trace "+good+" -feedback later", cli.Usage, "later", "late:48h, now and never")
	refuse("-algorithm paper -set degree=1.5", cli.Usage, "degree", "a whole number is needed")
	refuse("-trace "+good+" -budget 2", cli.Usage, "budget", "2", "1")
	refuse("-instance "+rich, cli.Failure, "rich.toml", "1e+30")
	refuse("-set kappa=0", cli.Usage, "kappa", "0", "0.1 or more")
	refuse("-set gamma=2", cli.Usage, "gamma", "2", "below 2")
	refuse("-set a=0.5,500,-1", cli.Usage, "0.5,500,-1", "power")
	refuse("-set d=nonsense", cli.Usage, "nonsense", "ceil")
	refuse("-set colour=red", cli.Usage, "colour", "kappa")
	refuse("-budget 5", cli.Usage, "budget", "5", "4")
	refuse("-instance pages:6 -algorithm lspe", cli.Usage, "in world pages", "allowed are forecast")
	refuse("-instance hosts:6 -objective delay", cli.Usage, "source 1 (\"1\"): fails is", "allowed is 0 under")
	refuse("-instance lognormal:6 -objective delay -believe hosts:6", cli.Usage, "hosts/6/1", "allowed is 0")
	refuse("-instance "+fails+" -law hump", cli.Usage, "fails is 0.1", "under the law hump")
	refuse("-instance "+fails+":hump", cli.Usage, "fails is 0.1", "under the law hump")
	refuse("-trace "+good+" -law power", cli.Usage, "law is \"power\"", "leave it out")
	refuse("-law delay", cli.Usage, "learners run where -objective names the law")
	refuse("-budget 0", cli.Usage, "budget is 0; allowed is a number above 0")
	refuse("-trace "+good+" -decay 0", cli.Usage, "decay is 0; allowed is a number above 0")
	refuse("-epoch 1h", cli.Usage, "epoch is a setting of world replay; the world here is poisson")
	refuse("-knowledge much", cli.Usage, "much", "online")
	refuse("-algorithm magic", cli.Usage, "magic", "paper")
	refuse("-format xml", cli.Usage, "xml", "json")
	refuse("-instance "+unknownKey, cli.Failure, "key.toml", "colour")
	refuse("-instance "+filepath.Join(dir, "missing.toml"), cli.Failure, "missing.toml")
	refuse("-believe "+filepath.Join(dir, "missing.toml"), cli.Failure, "missing.toml")
	refuse("-believe "+unknownKey, cli.Failure, "key.toml", "colour")
	refuse("-believe lognormal:5", cli.Usage, "lognormal:5 has other sources or costs than paper")
	refuse("-believe colour", cli.Usage, "unknown instance \"colour\"")
	refuse("-trace "+filepath.Join(dir, "missing.csv"), cli.Failure, "missing.csv")
	refuse("-trace "+noColumn, cli.Failure, "column.csv", "published_unix")
	refuse("-trace "+short, cli.Usage, "short.csv", "epoch")
	refuse("-trace "+good+" -epoch 1000h", cli.Usage, "has no whole epoch of 1000h0m0s; allowed is a shorter epoch")
	refuse("-trace "+good+" -split 0.999", cli.Usage, "the measured part lasts", "or another split")
	refuse("-trace "+truncated, cli.Failure, "cut.csv.gz")
}

// The lines below the table say what holds for the run, and whose Whittle it is.
func TestNotes(t *testing.T) {
	recording := recording(t)
	for _, tt := range []struct{ args, want string }{
		{"-steps 50 -algorithm forecast", "knowledge online"},
		{"-steps 50 -algorithm paper", "no policy that keeps the budget earns more than"},
		{"-steps 50 -instance pages:6", "Instance pages/6/1, learner forecast,"}, // in world pages
		{"-trace " + recording, "Whittle has parameters that were fitted"},
		{"-trace " + recording, "budget 1,"},
		{"-trace " + recording, " per epoch, also one that knows what will be published."},
		{"-trace " + recording + " -feedback late:24h", "becomes known 24h after its publication"},
		{"-steps 50 -instance lognormal:6 -seed 3", "budget 1,"},
	} {
		printed, _, err := train(t, strings.Fields(tt.args)...)
		if err != nil || !strings.Contains(printed, tt.want) {
			t.Errorf("%s: %v; want %q in\n%s", tt.args, err, tt.want, printed)
		}
	}
}

// README.md shows what its command prints, but for the speed.
func TestReadme(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors round some sums otherwise")
	}
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "go run ./cmd/train -steps 10000\n```\n")
	if !ok {
		t.Fatal("README.md does not name the command")
	}
	_, rest, _ = strings.Cut(rest, "```\n")
	shown, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("README.md does not show what the command prints")
	}
	printed, _, err := train(t, "-steps", "10000")
	if err != nil {
		t.Fatal(err)
	}
	speed := regexp.MustCompile(`\d+ steps per second`)
	clean := func(s string) string { return strings.TrimSpace(speed.ReplaceAllString(s, "N steps per second")) }
	if clean(shown) != clean(printed) {
		t.Errorf("README.md shows\n%s\nthe command prints\n%s", shown, printed)
	}
}

// Where a file of -out cannot be written the figures are printed all the same.
func TestUnwritableOut(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "config.toml", "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	out, _, err := train(t, "-steps", "20", "-out", dir)
	if err == nil || cli.Status(err) != cli.Failure || !strings.Contains(err.Error(), "config.toml") ||
		!strings.Contains(out, "round-robin") {
		t.Errorf("%v; printed %q", err, out)
	}
}
