package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, main) }

func config(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.toml")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

const small = "question = \"Does it run?\"\nseeds = 6\nsteps = 200\nlearner.algorithm = \"paper\"\nlearner.kappa = [0.1, 2]\n"

func call(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return clitest.Call(t, run, args...)
}

// must is a call without an error, whose log says something.
func must(t *testing.T, say string, args ...string) (stdout string) {
	t.Helper()
	stdout, log, err := call(t, args...)
	if err != nil || !strings.Contains(log, say) {
		t.Fatalf("%q: %v, %s; want %q", args, err, log, say)
	}
	return stdout
}

// refused is a call whose error says something.
func refused(t *testing.T, say string, args ...string) (stdout string) {
	t.Helper()
	stdout, _, err := call(t, args...)
	if cli.Status(err) != cli.Failure || !strings.Contains(err.Error(), say) {
		t.Errorf("%q: %v; want %q", args, err, say)
	}
	return stdout
}

func TestSweep(t *testing.T) {
	file, dir := config(t, small), t.TempDir()
	// Flags may stand behind the configuration.
	out := must(t, "12 runs now, 0 before", file, "-out", dir, "-set", "learner.gamma=0.1")
	for _, want := range []string{"kappa/0.1", "kappa/2", "●", "Best by learned_ratio"} {
		if !strings.Contains(out, want) {
			t.Errorf("stdout lacks %q:\n%s", want, out)
		}
	}
	for _, name := range []string{"config.toml", "runs.csv", "curves.csv", "learned.csv", "summary.csv", "summary.json", "summary.md"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, _ := os.ReadFile(filepath.Join(dir, "config.toml"))
	meta, _ := os.ReadFile(filepath.Join(dir, "meta.json"))
	if !strings.Contains(string(text), "\ngamma = 0.1\n") || !strings.Contains(string(meta), "-set learner.gamma=0.1") {
		t.Errorf("config.toml:\n%s\nmeta.json:\n%s", text, meta)
	}

	// Again: nothing is left to run. The resolved configuration is a sweep.
	must(t, "0 runs now, 12 before", filepath.Join(dir, "config.toml"), "-out", dir, "-progress", "off")
	for format, check := range map[string]func(string) error{
		"json": func(s string) error { return json.Unmarshal([]byte(s), &struct{}{}) },
		"csv":  func(s string) error { _, err := csv.NewReader(strings.NewReader(s)).ReadAll(); return err },
		"markdown": func(s string) error {
			if !strings.HasPrefix(s, "# small\n") {
				t.Errorf("markdown begins with %.40q", s)
			}
			return nil
		},
	} {
		if err := check(must(t, "", "-merge", dir, "-format", format)); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestShards(t *testing.T) {
	file, dir := config(t, small), t.TempDir()
	for _, env := range []string{"1", "3"} { // an array of tasks 1, 2, 3
		t.Setenv("SLURM_ARRAY_TASK_ID", env)
		t.Setenv("SLURM_ARRAY_TASK_COUNT", "3")
		t.Setenv("SLURM_ARRAY_TASK_MIN", "1")
		must(t, "runs are missing; when all shards have ended: sweep -merge "+dir, file, "-out", dir)
	}
	if out := refused(t, "4 of 12 runs are missing: kappa/0.1: 2 of 6 seeds; kappa/2: 2 of 6 seeds", "-merge", dir); !strings.Contains(out, "kappa/2") {
		t.Errorf("merge prints\n%s", out)
	}
	must(t, "4 runs now, 8 before", file, "-out", dir, "-shard", "1/3")
}

func TestSeveral(t *testing.T) {
	one, dir := config(t, small), t.TempDir()
	two := filepath.Join(t.TempDir(), "other.toml")
	if err := os.WriteFile(two, []byte(small), 0o666); err != nil {
		t.Fatal(err)
	}
	must(t, "", one, two, "-out", dir)
	if out := must(t, "", "-merge", dir); strings.Count(out, "Best by") != 2 {
		t.Errorf("merge of both\n%s", out)
	}
	// The first is refused, the second runs all the same.
	dir = t.TempDir()
	must(t, "", one, "-set", "seeds=7", "-out", filepath.Join(dir, "small"))
	if out := refused(t, "name another directory", one, two, "-out", dir); strings.Count(out, "Best by") != 1 {
		t.Errorf("after one that was refused\n%s", out)
	}
}

// A sweep keeps the instance file that it ran: it can be merged and repeated
// anywhere, and does not go on with another one.
func TestInstanceFile(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	two := "budget = 1\nsource = [{name = \"a\", rate = 9, decay = 0.1, interest = 1}, {name = \"b\", rate = 5, decay = 0.3, interest = 2}]\n"
	write("mine.toml", two)
	write("c.toml", small+"instance.name = \"mine.toml\"\n")
	changed := strings.Replace(two, "9", "8", 1)
	first := must(t, "12 runs now", "c.toml", "-out", "out")
	write("mine.toml", changed)
	refused(t, "out: holds another configuration, c: what mine.toml holds", "c.toml", "-out", "out")
	other := must(t, "12 runs now", "c.toml", "-out", "other")
	if other == first {
		t.Error("the other instance gives the same")
	}
	// What a flag names is what is there now, not the copy; where no copy can
	// be, none is looked for.
	if now := must(t, "12 runs now", "out/config.toml", "-set", "instance.name=mine.toml", "-out", "set"); strings.ReplaceAll(now, "config", "c") != strings.ReplaceAll(other, "config", "c") {
		t.Errorf("with the flag:\n%s\nwant\n%s", now, other)
	}
	// A configuration that a user writes is about the files as they are now, also
	// beside the copies.
	write("mine.toml", two)
	must(t, "12 runs now", "c.toml", "-out", ".")
	write("mine.toml", changed)
	refused(t, ".: holds another configuration", "c.toml", "-out", ".")
	if err := os.RemoveAll("inputs"); err != nil {
		t.Fatal(err)
	}
	write("inputs", "no directory")
	must(t, "0 runs now", "c.toml", "-out", "other")

	long := filepath.Join(strings.Repeat("d", 200), strings.Repeat("e", 200))
	if err := os.MkdirAll(long, 0o777); err != nil {
		t.Fatal(err)
	}
	long = filepath.Join(long, strings.Repeat("ü", 100)+".toml")
	write(long, two)
	write("long.toml", small+"instance.name = \""+filepath.ToSlash(long)+"\"\n")
	must(t, "12 runs now", "long.toml", "-out", "long")
	for _, name := range []string{long, "mine.toml"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "0 runs now", "long/config.toml", "-out", "long") // from the copy
	if again := must(t, "0 runs now", "-merge", "out"); again != first {
		t.Errorf("merged without the file\n%s", again)
	}
	if again := must(t, "12 runs now", "out/config.toml", "-out", "repeated"); again != first {
		t.Errorf("repeated without the file\n%s", again)
	}
	refused(t, "c.toml:6:1: instance.name: stat mine.toml: no such file", "c.toml", "-list")
}

// People get the ids, machines the settings as well.
func TestList(t *testing.T) {
	if out := must(t, "", "-list", "features", "-set", "learner.gamma=[0.1,0.2]", "-set", "learner.features=unit", "-set", "learner.delta=0.001"); !regexp.MustCompile(`^gamma/0.1\ngamma/0.2\n\nfeatures: 2 cells × 20 seeds = 40 runs, about [0-9.]+m?s\n$`).MatchString(out) {
		t.Errorf("list\n%s", out)
	}
	file := config(t, small)
	var got struct {
		Name  string
		Cells []struct {
			ID       string
			Settings map[string]float64
		}
		Seeds   []int
		Runs    int
		Seconds float64
	}
	out := must(t, "", "-list", file, "-format", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Name != "small" || got.Runs != 12 || len(got.Seeds) != 6 || got.Seconds <= 0 || len(got.Cells) != 2 || got.Cells[1].ID != "kappa/2" || got.Cells[1].Settings["learner.kappa"] != 2 {
		t.Errorf("%v, %+v from\n%s", err, got, out)
	}
	if out := must(t, "", "-list", file, "-format", "csv"); out != "cell,learner.kappa\nkappa/0.1,0.1\nkappa/2,2\n" {
		t.Errorf("csv\n%s", out)
	}
}

func TestMistakes(t *testing.T) {
	file := config(t, small)
	for _, c := range []struct {
		args   []string
		want   string
		status int
	}{
		{[]string{"-workers", "-1"}, "-workers is -1", cli.Usage},
		{[]string{"-shard", "8/8"}, `shard is "8/8"; allowed is i/n`, cli.Usage},
		{[]string{"-merge", ""}, "-merge is empty; allowed is a directory", cli.Usage},
		{[]string{file, "-out="}, "-out is empty; allowed is a directory", cli.Usage},
		{[]string{file, "-set", "reference=kappa/7"}, `reference is "kappa/7"; allowed are kappa/0.1, kappa/2`, cli.Usage},
		{[]string{"-nonsense"}, "-h lists the flags", cli.Usage},
		{[]string{"-merge", "x", "-set", "a=1"}, "leave out -set", cli.Usage},
		{[]string{"-merge", t.TempDir()}, "holds no config.toml", cli.Failure},
		{[]string{"nowhere.toml"}, "nowhere.toml: no such file", cli.Failure},
		{[]string{file, file}, "two configurations have the name", cli.Usage},
		{[]string{file, "-set", "learner.kapa=1"}, `unknown key "learner.kapa"; allowed are name`, cli.Usage},
		{[]string{config(t, small+"learner.nothing = 1\n"), "-set", "learner.gamma=0.1"}, "learner.nothing", cli.Failure},
		{[]string{"kappa", "paper", "-format", "json"}, "prints one sweep, not 2", cli.Usage},
		{[]string{file, "-format", "xml"}, `format is "xml"`, cli.Usage},
	} {
		_, _, err := call(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || cli.Status(err) != c.status {
			t.Errorf("%q: %v, status %d; want %q, status %d", c.args, err, cli.Status(err), c.want, c.status)
		}
	}
}

// Ctrl-C: what is finished is kept, the message says how to go on, status 130.
func TestInterrupt(t *testing.T) {
	file, dir := config(t, "question = \"Long?\"\nseeds = 400\nsteps = 5000\nlearner.algorithm = \"paper\"\nlearner.kappa = [0.1, 2]\n"), t.TempDir()
	cmd := clitest.Process(t, file, "-out", dir, "-workers", "2")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(dir, "records", "0000-of-0001.jsonl")
	for range 1000 { // until some runs are recorded
		if b, _ := os.ReadFile(record); bytes.Count(b, []byte(`"row":`)) > 3 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cmd.Process.Signal(os.Interrupt)
	err := cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); err == nil || status.ExitStatus() != cli.Interrupted {
		t.Fatalf("%v, status %v: %s", err, status, &log)
	}
	if !strings.Contains(log.String(), "recorded in "+dir+", and the same command runs the others") {
		t.Errorf("stderr: %s", &log)
	}
	b, err := os.ReadFile(record)
	if err != nil || !bytes.HasSuffix(b, []byte("\n")) || bytes.Count(b, []byte(`"row":`)) < 4 {
		t.Errorf("the record file ends in the middle of a line, or is short: %d bytes, %v", len(b), err)
	}
}

// Ctrl-C between two sweeps: the second was not run, and the status says so.
func TestInterruptBetween(t *testing.T) {
	one, dir := config(t, small), t.TempDir()
	two := filepath.Join(t.TempDir(), "other.toml")
	if err := os.WriteFile(two, []byte(small), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err := run(ctx, []string{one, two, "-out", dir}, writerFunc(func(b []byte) (int, error) {
		stop() // the first prints its results
		return len(b), nil
	}), io.Discard)
	if cli.Status(err) != cli.Interrupted || !strings.Contains(cli.Line("sweep", err), "interrupted before other; the same command goes on with it") {
		t.Errorf("status %d, %v", cli.Status(err), err)
	}
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// The examples at the top of main.go are calls that work.
func TestExamples(t *testing.T) {
	src, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	n := 0
	for line := range strings.Lines(string(src)) {
		example, ok := strings.CutPrefix(line, "//\tgo run ./cmd/sweep")
		if !ok {
			continue
		}
		n++
		args := append(strings.Fields(example), "-list")
		out, _, err := call(t, args...)
		if strings.Contains(example, "-merge") {
			if err == nil || !strings.Contains(err.Error(), "leave out -list") { // -merge is understood
				t.Errorf("%q: %v", args, err)
			}
			continue
		}
		if err != nil || !strings.Contains(out, " runs, about ") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	if n < 5 {
		t.Errorf("%d examples; want those at the top of main.go", n)
	}
}

func TestQuote(t *testing.T) {
	if got := repeat("a b.toml", []string{"learner.kappa=[1, 2]", "seeds=3"}); got != "go run ./cmd/sweep 'a b.toml' -set 'learner.kappa=[1, 2]' -set seeds=3" {
		t.Errorf("repeat = %s", got)
	}
}
