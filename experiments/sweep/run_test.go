package sweep

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ephemera/env/stream"
	"ephemera/experiments/files"
	"ephemera/experiments/stats"
)

// childEnv turns the test binary into a sweep process: directory, shard.
const childEnv = "EPHEMERA_SWEEP_CHILD"

func TestMain(m *testing.M) {
	if arg := os.Getenv(childEnv); arg != "" {
		os.Exit(child(arg))
	}
	os.Exit(m.Run())
}

func child(arg string) int {
	if arg == "arithmetic" {
		fmt.Print(arithmetic())
		return 0
	}
	dir, shard, _ := strings.Cut(arg, "|")
	f := fake{pause: 200 * time.Microsecond}
	c, err := Load(f, "life.toml", []byte(lifeTOML), nil)
	if err == nil {
		var s Shard
		if s, err = ParseShard(shard); err == nil {
			_, err = Run(context.Background(), c, Options{Dir: dir, Workers: 2, Shard: s, Revision: "test"})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

const lifeTOML = "question = \"Lives?\"\nseeds = 25\nlearner.kappa = [1, 2, 3, 4, 5, 6, 7, 8]\ninstance.budget = [1, 2, 3]\n"

func startChild(t *testing.T, dir, shard string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir+"|"+shard)
	cmd.Stderr = &bytes.Buffer{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// A sweep that is killed 50 times at random moments, then left alone, leaves
// the same bytes as one that was never disturbed.
func TestKill(t *testing.T) {
	want := uninterrupted(t)
	dir := t.TempDir()
	rng := rand.New(stream.New(1, stream.Test, 50))
	kills, lives := 0, 1
	for kills < 50 {
		cmd := startChild(t, dir, "0/1")
		time.Sleep(time.Duration(rng.IntN(80_000)) * time.Microsecond)
		cmd.Process.Kill()
		if err := cmd.Wait(); err == nil {
			// The sweep was complete: begin another life.
			sameFiles(t, finals(t, dir), want)
			dir = t.TempDir()
			lives++
			continue
		} else if !killed(err) {
			t.Fatalf("the process ended by itself: %v: %s", err, cmd.Stderr)
		}
		kills++
	}
	finishChild(t, dir, "0/1")
	sameFiles(t, finals(t, dir), want)
	t.Logf("%d kills over %d lives", kills, lives)
}

// The same with four shards at work on one directory at once.
func TestKillShards(t *testing.T) {
	want := uninterrupted(t)
	dir := t.TempDir()
	rng := rand.New(stream.New(1, stream.Test, 51))
	for range 12 {
		var procs []*exec.Cmd
		for i := range 4 {
			procs = append(procs, startChild(t, dir, fmt.Sprintf("%d/4", i)))
		}
		for _, p := range procs {
			time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
			p.Process.Kill()
		}
		for _, p := range procs {
			if err := p.Wait(); err != nil && !killed(err) {
				t.Fatalf("the process ended by itself: %v: %s", err, p.Stderr)
			}
		}
	}
	for i := range 4 {
		finishChild(t, dir, fmt.Sprintf("%d/4", i))
	}
	sameFiles(t, finals(t, dir), want)
}

func killed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	ws, ok := exit.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

func finishChild(t *testing.T, dir, shard string) {
	t.Helper()
	cmd := startChild(t, dir, shard)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, cmd.Stderr)
	}
}

func uninterrupted(t *testing.T) map[string]string {
	t.Helper()
	f := fake{}
	c, err := Load(f, "life.toml", []byte(lifeTOML), nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rep := mustRun(t, c, Options{Dir: dir, Workers: 2, Revision: "test"})
	if rep.Ran != 600 || rep.Missing != 0 || !rep.Final {
		t.Fatalf("report %+v", rep)
	}
	out := finals(t, dir)
	for _, name := range []string{"config.toml", "meta.json", "runs.csv", "curves.csv", "learned.csv", "summary.json", "summary.csv", "summary.md"} {
		if out[name] == "" {
			t.Fatalf("%s is missing or empty", name)
		}
	}
	return out
}

// Neither the number of workers nor shards nor a change of the division on the
// way alter a byte: the files follow from the records alone, also where an
// earlier call or the configuration said more.
func TestDivision(t *testing.T) {
	c, one := mustLoad(t, kappaTOML), t.TempDir()
	mustRun(t, c, Options{Dir: one, Workers: 1, Command: "sweep x"})
	want := finals(t, one)

	for _, workers := range []int{2, 7} {
		dir := t.TempDir()
		mustRun(t, c, Options{Dir: dir, Workers: workers, Command: "sweep x"})
		sameFiles(t, finals(t, dir), want)
	}

	dir := t.TempDir()
	for _, i := range []int{2, 0} {
		rep := mustRun(t, c, Options{Dir: dir, Shard: Shard{i, 3}})
		if rep.Ran != 10 || rep.Final {
			t.Errorf("shard %d/3: %+v", i, rep)
		}
	}
	if rep, err := Merge(context.Background(), c, Options{Dir: dir}); err != nil || rep.Missing != 10 || !rep.Final || len(rep.Gaps) != 5 || rep.Gaps[0] != "kappa/0.5: 2 of 6 seeds" {
		t.Errorf("merge of two shards: %+v, %v", rep, err)
	}
	if md := finals(t, dir)["summary.md"]; !strings.Contains(md, "10 of 30 runs are missing") || !strings.Contains(md, "need at least 5 seeds for an interval") {
		t.Errorf("summary of two shards:\n%s", md)
	}
	// The rest without shards.
	if rep := mustRun(t, c, Options{Dir: dir, Command: "sweep x"}); rep.Ran != 10 || !rep.Final || rep.Missing != 0 {
		t.Errorf("the rest: %+v", rep)
	}
	sameFiles(t, finals(t, dir), want)
	if rep := mustRun(t, c, Options{Dir: dir, Command: "sweep x"}); rep.Ran != 0 || !rep.Final {
		t.Errorf("again: %+v", rep)
	}
	sameFiles(t, finals(t, dir), want)
	resolved, err := LoadFile(fake{}, filepath.Join(dir, "config.toml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Merge(context.Background(), resolved, Options{Dir: dir}); err != nil {
		t.Error(err)
	}
	sameFiles(t, finals(t, dir), want)
}

// A directory whose config.toml is lost still belongs to the sweep of its
// records: a call with another configuration leaves it as it is.
func TestLostConfiguration(t *testing.T) {
	c, dir := swept(t, kappaTOML)
	want := finals(t, dir)
	for name := range want {
		removeFile(t, filepath.Join(dir, name))
	}
	if _, err := Run(context.Background(), mustLoad(t, kappaTOML, "seeds=3"), Options{Dir: dir}); !errors.Is(err, errOther) || !strings.Contains(err.Error(), `0000-of-0001.jsonl:`) {
		t.Errorf("error %v", err)
	}
	if rep := mustRun(t, c, Options{Dir: dir}); rep.Ran != 0 {
		t.Errorf("%d runs again", rep.Ran)
	}
	sameFiles(t, finals(t, dir), want)
	// Also where only that is lost, and where a process was killed that had put some
	// files of a set in their places.
	for _, damage := range []func() error{
		func() error { return os.Remove(filepath.Join(dir, "config.toml")) },
		func() error {
			set := filepath.Join(dir, ".set")
			return errors.Join(os.Mkdir(set, 0o777), os.Rename(filepath.Join(dir, "meta.json"), filepath.Join(set, "meta.json")))
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if rep := mustRun(t, c, Options{Dir: dir}); rep.Ran != 0 {
			t.Errorf("%d runs again", rep.Ran)
		}
		sameFiles(t, finals(t, dir), want)
	}
}

// Shards of two configurations that begin together: one configuration has the
// directory, the other is refused, and the first goes on.
func TestClaimTogether(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		var group sync.WaitGroup
		var errs [2]error
		for k, text := range []string{"learner.kappa = [1, 2]\n", "learner.kappa = [1, 3]\n"} {
			c := mustLoad(t, text)
			group.Go(func() {
				_, errs[k] = Run(context.Background(), c, Options{Dir: dir, Shard: Shard{k, 2}})
			})
		}
		group.Wait()
		refused := slices.IndexFunc(errs[:], func(err error) bool { return err != nil })
		if refused < 0 || errs[1-refused] != nil || !strings.Contains(errs[refused].Error(), "holds another configuration") {
			t.Fatalf("errors %v; want one that says whose the directory is", errs)
		}
		if want := "learner.kappa: 1, " + []string{"3", "2"}[refused] + " there, 1, " + []string{"2", "3"}[refused] + " here"; !strings.Contains(errs[refused].Error(), want) {
			t.Errorf("error %v; want %q", errs[refused], want)
		}
		mustRun(t, mustLoad(t, "learner.kappa = [1, "+[]string{"3", "2"}[refused]+"]\n"), Options{Dir: dir})
	}
}

// Shards of machines that compute differently are not mixed: one that is to go on
// is refused before it runs, records that were put together when they are merged.
func TestArithmetic(t *testing.T) {
	c, dir, other := mustLoad(t, kappaTOML), t.TempDir(), t.TempDir()
	here := arithmetic
	defer func() { arithmetic = here }()
	arithmetic = func() string { return "amd64 (exp 11)" }
	mustRun(t, c, Options{Dir: dir, Shard: Shard{0, 2}})
	arithmetic = func() string { return "arm64 (exp 22)" }
	_, err := Run(context.Background(), c, Options{Dir: dir, Shard: Shard{1, 2}})
	refused(t, err, dir+": was begun on amd64 (exp 11), and this is arm64 (exp 22)")
	if n := len(recordFiles(dir)); n != 1 {
		t.Errorf("%d record files", n)
	}
	// Elsewhere it runs; its records do not count beside the others.
	mustRun(t, c, Options{Dir: other, Shard: Shard{1, 2}})
	if err := os.Rename(recordFiles(other)[0], filepath.Join(dir, "records", "0001-of-0002.jsonl")); err != nil {
		t.Fatal(err)
	}
	_, err = Merge(context.Background(), c, Options{Dir: dir})
	refused(t, err, "0000-of-0002.jsonl was computed on amd64 (exp 11), ", "0001-of-0002.jsonl on arm64 (exp 22)")
	if n := len(finals(t, dir)); n != 2 {
		t.Errorf("%d final files", n)
	}
}

// Processors with and without FMA instructions are told apart by what they give.
func TestArithmeticOfProcessors(t *testing.T) {
	info, _ := os.ReadFile("/proc/cpuinfo")
	if runtime.GOARCH != "amd64" || !strings.Contains(string(info), " fma ") {
		t.Skip("needs Linux on an amd64 processor that has FMA instructions, and can do without")
	}
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), childEnv+"=arithmetic", "GODEBUG=cpu.fma=off")
	out, err := other.Output()
	if err != nil || !strings.HasPrefix(string(out), "amd64 (exp ") || string(out) == arithmetic() {
		t.Errorf("%v: without FMA %s, with it %s", err, out, arithmetic())
	}
}

// A directory of something else is left as it is, with what another program had
// written and not yet put in its place.
func TestForeignDirectory(t *testing.T) {
	for _, foreign := range []map[string]string{
		{"runs.csv": "mine\n"},
		{"curves.csv": "mine\n"},
		{".set/runs.csv": "mine\n"},
		{".set/config.toml": "algorithm = \"lspe\"\n", ".set/result.json": "{}"},
		{"config.toml": "algorithm = \"lspe\"\n", ".set/result.json": "{}", ".set/meta.json": "{}"},
		{".set/config.toml": "steps = 3\n", ".set/meta.json": `{"format": 1}`, ".new/config.toml": "steps"},
	} {
		dir := t.TempDir()
		for name, text := range foreign {
			writeFile(t, filepath.Join(dir, name), []byte(text))
		}
		_, err := Run(context.Background(), mustLoad(t, kappaTOML), Options{Dir: dir})
		refused(t, err, dir, "name another directory with -out")
		left := map[string]string{}
		err = fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(filepath.Join(dir, name))
			left[name] = string(b)
			return err
		})
		if err != nil || !maps.Equal(left, foreign) {
			t.Errorf("there was %q, and now %q; %v", foreign, left, err)
		}
	}
}

// A summary is not replaced by one of fewer runs.
func TestLostRecords(t *testing.T) {
	c, dir := swept(t, kappaTOML)
	want := finals(t, dir)
	removeFile(t, filepath.Join(dir, "records", "0000-of-0001.jsonl"))
	_, err := Merge(context.Background(), c, Options{Dir: dir})
	refused(t, err, "summary.json is of 30 runs, but records/ holds 0")
	sameFiles(t, finals(t, dir), want)
}

// An interrupted merge leaves the final files as they were.
func TestMergeInterrupted(t *testing.T) {
	c, dir := swept(t, kappaTOML)
	want := finals(t, dir)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Merge(ctx, c, Options{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	sameFiles(t, finals(t, dir), want)

	// Also where it waits for another one.
	held, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, stop = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	if _, err := Merge(ctx, c, Options{Dir: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting: error %v", err)
	}
}

// A directory without records is no sweep to merge.
func TestNoRecords(t *testing.T) {
	dir := t.TempDir()
	_, err := Merge(context.Background(), mustLoad(t, kappaTOML), Options{Dir: dir})
	refused(t, err, dir+": holds no records: there is no directory records")
}

// The answer is one sentence that claims no more than the intervals, and none
// where nothing tells cells apart or they solve different problems.
func TestAnswer(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"seeds = 6\nlearner.kappa = [1, 2, 3]\n", "Best by reward is kappa/3 with "},
		{"seeds = 6\nlearner.kappa = [1, 2, 3]\n", " interest per epoch, a difference of 20.00 [20.00, 20.00] to kappa/1."},
		{"seeds = 6\nlearner.kappa = [1, 2, 3]\nreference = \"kappa/3\"\n", " interest per epoch, the reference."},
		{"seeds = 2\nlearner.kappa = [1, 2, 3]\n", "(n = 2) interest per epoch, a difference of 20.00 (n = 2) to kappa/1."},
		{"seeds = 6\nlearner.kappa = [1, 2]\ninstance.id = [\"paper\", \"wide\"]\n", ""},
		{"seeds = 6\nlearner.kappa = 1\n", ""},
		{"seeds = 6\nsteps = [1, 2]\n", ""},                                // all the same
		{"seeds = 6\nlearner.kappa = [1, 2, 3]\nmetric = \"ratio\"\n", ""}, // no cell has a mean
	} {
		_, dir := swept(t, c.text)
		s := summary(t, dir)
		if !strings.Contains(s.Answer, c.want) || (c.want == "") != (s.Answer == "") {
			t.Errorf("%s: the answer is %q; want %q", c.text, s.Answer, c.want)
		}
	}
}

// Lines peak where their best point is apart from both ends, and cross between
// points at which they are apart, in the sense of the metric.
func TestPeaksAndCrossings(t *testing.T) {
	summaryOf := func(less bool, lines map[string][]float64) *Summary {
		s := &Summary{Figures: []Figure{{Name: "cost", Less: less}}, Metric: "cost", Reference: "a1", Axes: []string{"line", "x"}}
		for _, name := range []string{"a", "b"} {
			for k, v := range lines[name] {
				s.Cells = append(s.Cells, Row{ID: fmt.Sprint(name, k+1), Settings: map[string]any{"line": name, "x": float64(k + 1)}, Mean: []stats.Estimate{{Value: v, Lo: v - 1, Hi: v + 1, N: 5}}})
			}
		}
		return s
	}
	for _, c := range []struct {
		less  bool
		lines map[string][]float64
		want  string
	}{
		{false, map[string][]float64{"a": {1, 9, 4}}, "; line a peaks at x 2."},
		{true, map[string][]float64{"a": {9, 1, 4}}, "; line a peaks at x 2."},
		{false, map[string][]float64{"a": {1, 9, 8}}, "."}, // not apart from its end
		{false, map[string][]float64{"a": {1, 4, 9}}, "."}, // rises
		{false, map[string][]float64{"a": {1, 4, 9}, "b": {5, 5, 5}}, "; line a and line b cross between x 1 and 3."},
		{false, map[string][]float64{"a": {1, 5, 6}, "b": {5, 5, 5}}, "."},
	} {
		if got := summaryOf(c.less, c.lines).answer(); !strings.HasSuffix(got, "the reference"+c.want) {
			t.Errorf("%v: %q; want the end %q", c.lines, got, c.want)
		}
	}
}

// What has no mean is named, in the answer and in the warnings.
func TestNotFinite(t *testing.T) {
	_, dir := swept(t, "seeds = 6\nmetric = \"ratio\"\nlearner.kappa = [1, 2]\ninstance.id = [\"paper\", \"wide\"]\n")
	s := summary(t, dir)
	if s.Answer != "" || s.Cells[2].Diff != nil || s.Cells[1].Diff == nil {
		t.Errorf("cells of two instances: the answer is %q, differences %v and %v", s.Answer, s.Cells[2].Diff, s.Cells[1].Diff)
	}
	if w := s.Warnings(); len(w) != 1 || w[0] != "1 of 6 values are not finite: ratio of id/paper/kappa/1, ratio of id/paper/kappa/2" {
		t.Errorf("warnings %q", w)
	}
	_, few := swept(t, "seeds = 2\nlearner.kappa = [1, 2]\n")
	if w := summary(t, few).Warnings(); !slices.Equal(w, []string{"need at least 5 seeds for an interval"}) {
		t.Errorf("warnings %q", w)
	}
}

// The files say what the runner said.
func TestFiles(t *testing.T) {
	c := mustLoad(t, kappaTOML)
	dir := t.TempDir()
	mustRun(t, c, Options{Dir: dir, Revision: "v1 abc", Command: "go run ./cmd/sweep x"})
	files := finals(t, dir)

	rows := readCSV(t, files["runs.csv"])
	if want := []string{"cell", "seed", "learner.kappa", "reward", "crawls", "ratio"}; !slices.Equal(rows[0], want) || len(rows) != 31 {
		t.Fatalf("%d rows, head %q; want 31 and %q", len(rows), rows[0], want)
	}
	for n, row := range rows[1:] {
		cell, seed := &c.Cells[n/6], uint64(n%6+1)
		res, _ := fake{}.Run(context.Background(), cell, seed)
		want := []string{cell.ID, fmt.Sprint(seed), fmt.Sprint(cell.Float("learner.kappa"))}
		for _, v := range res.Row {
			want = append(want, strconv.FormatFloat(v, 'g', -1, 64))
		}
		if !slices.Equal(row, want) {
			t.Errorf("row %d is %q; want %q", n, row, want)
		}
	}
	curves := readCSV(t, files["curves.csv"])
	if len(curves) != 1+30*7 || curves[2][2] != "2" || curves[2][4] != "+Inf" {
		t.Errorf("%d curve rows; third %q", len(curves), curves[2])
	}
	learned := readCSV(t, files["learned.csv"])
	if len(learned) != 61 || learned[2][3] != `a, "b"` {
		t.Errorf("%d learned rows; third %q", len(learned), learned[2])
	}

	s := summary(t, dir)
	// Common random numbers: the difference between two cells is exactly 10 Δκ.
	if d := s.Cells[4].Diff; math.Abs(d.Value-60) > 1e-9 || math.Abs(d.Lo-60) > 1e-9 || d.N != 6 {
		t.Errorf("κ = 8 minus κ = 2: %v; want 60", d)
	}
	if s.Cells[2].Diff != nil || s.Cells[4].Improve.Value != 1 {
		t.Errorf("reference %v; improvement %v", s.Cells[2].Diff, s.Cells[4].Improve)
	}
	if e := s.Cells[0].Mean[2]; !math.IsNaN(e.Value) || e.Warning == "" {
		t.Errorf("mean of a figure with a NaN: %+v", e)
	}
	if want := "Best by reward is kappa/8 with "; !strings.HasPrefix(s.Answer, want) || !strings.HasSuffix(s.Answer, " interest per epoch, a difference of 60.00 [60.00, 60.00] to kappa/2.") {
		t.Errorf("answer %q", s.Answer)
	}
	for _, want := range []string{"question = 'How does κ", "kappa = [0.5, 1.0, 2.0, 4.0, 8.0]", "steps = 100"} {
		if !strings.Contains(files["config.toml"], want) {
			t.Errorf("config.toml lacks %q:\n%s", want, files["config.toml"])
		}
	}
	m, err := read(filepath.Join(dir, MetaFile), ParseMeta)
	if err != nil || m.Program != "v1 abc" || m.Command != "go run ./cmd/sweep x" || len(m.Cells) != 5 || m.Cells[4].Settings["learner.kappa"] != 8.0 || m.Figures[0].Unit != "interest per epoch" {
		t.Errorf("meta.json: %v, %+v", err, m)
	}
	if s.Profile == nil || len(s.Profile.Lines) != 5 {
		t.Fatalf("profile %+v", s.Profile)
	}
	if p := s.Profile.Lines[0].Share; p[0].Value != 1 || p[60].Value != 0 {
		t.Errorf("profile begins at %v and ends at %v", p[0], p[60])
	}
}

func TestGroup(t *testing.T) {
	_, dir := swept(t, "seeds = 6\ngroup = \"learner.algorithm\"\n[[cells]]\nlearner.algorithm = \"whittle\"\ninstance.id = [\"paper\", \"wide\"]\n[[cells]]\ninstance.id = [\"paper\", \"wide\"]\n")
	s := summary(t, dir)
	if len(s.Groups) != 2 || s.Groups[0].Value != "whittle" || s.Groups[0].Cells != 2 || s.Groups[1].Value != "paper" {
		t.Fatalf("groups %+v", s.Groups)
	}
	if d := s.Groups[0].Mean.Value - s.Groups[1].Mean.Value; math.Abs(d-70) > 1e-9 {
		t.Errorf("whittle minus paper: %v; want 70", d)
	}
	if len(s.Profile.Lines) != 2 {
		t.Errorf("%d profiles; want one per group", len(s.Profile.Lines))
	}

	// Also where all cells have the same value of the key.
	_, dir = swept(t, "seeds = 6\ngroup = \"learner.algorithm\"\ninstance.id = [\"paper\", \"wide\"]\nlearner.kappa = [1, 2]\n")
	if s = summary(t, dir); len(s.Groups) != 1 || s.Groups[0].Value != "paper" || s.Groups[0].Cells != 4 || s.Profile == nil {
		t.Errorf("one group: %+v", s.Groups)
	}
}

// A failing cell is named and the others go on; run again, only it is tried.
func TestFailures(t *testing.T) {
	c := mustLoad(t, "seeds = 4\nfail = [\"\", \"error\", \"panic\", \"odd\"]\n")
	dir := t.TempDir()
	var log []string
	rep := mustRun(t, c, Options{Dir: dir, Workers: 2, Log: func(line string) { log = append(log, line) }})
	if rep.Ran != 7 || rep.Failed != 9 || rep.Missing != 9 || !rep.Final || len(rep.Failures) != 9 {
		t.Errorf("report %+v", rep)
	}
	for _, want := range []string{
		"fail/error, seed 2: the learner diverged",
		"fail/panic, seed 3: panic: runtime error: index out of range [3] with length 0 (fake_test.go:",
		"fail/odd, seed 1: the result has 1 figures, not 3",
	} {
		if !slices.ContainsFunc(rep.Failures, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("failures %q\nlack %q", rep.Failures, want)
		}
	}
	if len(log) != 9 || strings.Count(strings.Join(log, " "), "fail/panic") != 4 {
		t.Errorf("log %q", log)
	}
	first := finals(t, dir)
	if !strings.Contains(first["summary.md"], "failed: fail/error, seed 2") {
		t.Errorf("summary.md:\n%s", first["summary.md"])
	}
	rep = mustRun(t, c, Options{Dir: dir, Workers: 1})
	if rep.Ran != 0 || rep.Failed != 9 {
		t.Errorf("again: %+v", rep)
	}
	sameFiles(t, finals(t, dir), first)
}

// A shard tells of its own failures, a merge of all.
func TestFailuresOfShards(t *testing.T) {
	c := mustLoad(t, "seeds = 4\nfail = [\"\", \"error\"]\n") // run 5 fails
	dir := t.TempDir()
	for i, want := range []int{0, 0, 1} {
		if rep := mustRun(t, c, Options{Dir: dir, Shard: Shard{i, 3}}); rep.Failed != want {
			t.Errorf("shard %d/3: %+v; want %d failures", i, rep, want)
		}
	}
	if rep := mustRun(t, c, Options{Dir: dir, Shard: Shard{0, 3}}); rep.Failed != 0 {
		t.Errorf("shard 0/3 again: %+v", rep)
	}
	if rep, err := Merge(context.Background(), c, Options{Dir: dir}); err != nil || rep.Failed != 1 {
		t.Errorf("merge: %+v, %v", rep, err)
	}
}

func TestInterrupt(t *testing.T) {
	c, err := Load(fake{pause: time.Millisecond}, "life.toml", []byte(lifeTOML), nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	next := 0
	rep, err := Run(ctx, c, Options{Dir: dir, Workers: 2, Revision: "test", Progress: func(done, failed, total int) {
		if done != next || failed != 0 || total != 600 {
			t.Errorf("progress: %d done and %d failed of %d; want %d and 0 of 600", done, failed, total, next)
		}
		if next++; done == 40 {
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) || rep.Ran < 40 || rep.Ran > 50 {
		t.Fatalf("interrupted after 40 runs: %+v, %v", rep, err)
	}
	if got := finals(t, dir); len(got) != 2 {
		t.Errorf("files after the interruption: %d; want config.toml and meta.json alone", len(got))
	}
	again := mustRun(t, c, Options{Dir: dir, Revision: "test"})
	if again.Ran != 600-rep.Ran {
		t.Errorf("%d and %d runs; want 600 together", rep.Ran, again.Ran)
	}
	sameFiles(t, finals(t, dir), uninterrupted(t))
}

// lacking skips a test whose needs are not met, or fails it where none may be
// skipped.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("EPHEMERA_REQUIRE_ALL") == "1" {
		t.Fatal(what + ", and EPHEMERA_REQUIRE_ALL=1")
	}
	t.Skip(what)
}

// broken is a record file on a disk that takes a number of bytes, then half of a
// write and an error, or does not keep what it took.
type broken struct {
	*os.File
	left int
	sync error
}

func (d *broken) Write(b []byte) (int, error) {
	if len(b) > d.left {
		n, _ := d.File.Write(b[:d.left/2])
		return n, &os.PathError{Op: "write", Path: d.Name(), Err: syscall.ENOSPC}
	}
	d.left -= len(b)
	return d.File.Write(b)
}

func (d *broken) Sync() error {
	if d.sync != nil {
		return &os.PathError{Op: "sync", Path: d.Name(), Err: d.sync}
	}
	return d.File.Sync()
}

// What the disk did not take is not called done, and run again.
func TestBrokenDisk(t *testing.T) {
	c, want := swept(t, kappaTOML)
	for _, disk := range []struct {
		left     int
		sync, is error
	}{{5000, nil, syscall.ENOSPC}, {1 << 20, syscall.EIO, syscall.EIO}} {
		dir := t.TempDir()
		rep, err := Run(context.Background(), c, Options{Dir: dir, Workers: 2, openLog: func(path string) (logFile, error) {
			f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
			return &broken{f, disk.left, disk.sync}, err
		}})
		refused(t, err, "0000-of-0001.jsonl")
		if full := disk.is == syscall.ENOSPC; !errors.Is(err, disk.is) || strings.Contains(err.Error(), "make room and start again") != full || full && rep.Ran == 0 || rep.Ran == 30 {
			t.Errorf("%d runs are recorded, and then %v; want %v", rep.Ran, err, disk.is)
		}
		if got := finals(t, dir); len(got) != 2 {
			t.Errorf("%d final files; want config.toml and meta.json alone", len(got))
		}
		if again := mustRun(t, c, Options{Dir: dir}); disk.sync == nil && again.Ran != 30-rep.Ran {
			t.Errorf("%d and %d runs; want 30 together", rep.Ran, again.Ran)
		}
		sameFiles(t, finals(t, dir), finals(t, want))
	}
}

// mount mounts a file system in the memory, or one that is there again.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		lacking(t, "needs root on Linux to mount a file system")
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		lacking(t, fmt.Sprintf("cannot mount a tmpfs here: %v: %s", err, out))
	}
	t.Cleanup(func() { exec.Command("umount", dir).Run() })
}

// The same on a file system that is really full, where the test may mount one.
func TestRealDiskFull(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, "size=256k")
	c := mustLoad(t, lifeTOML)
	rep, err := Run(context.Background(), c, Options{Dir: filepath.Join(dir, "out"), Workers: 2})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v", err)
	}
	mount(t, dir, "remount,size=64m")
	again := mustRun(t, c, Options{Dir: filepath.Join(dir, "out")})
	if rep.Ran == 0 || again.Ran == 0 || rep.Ran+again.Ran != 600 {
		t.Errorf("%d and %d runs; want 600 together", rep.Ran, again.Ran)
	}
}

func TestReadOnly(t *testing.T) {
	c := mustLoad(t, kappaTOML)
	parent := t.TempDir()
	if os.Getuid() == 0 { // root may write anywhere, except to a read-only mount
		mount(t, parent, "ro")
	} else if err := os.Chmod(parent, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := Run(context.Background(), c, Options{Dir: filepath.Join(parent, "out")})
	refused(t, err, "the directory of a sweep must be writable")
}

func TestLock(t *testing.T) {
	c := mustLoad(t, kappaTOML)
	dir := t.TempDir()
	try := func(s Shard) error {
		_, err := Run(context.Background(), c, Options{Dir: dir, Shard: s})
		return err
	}
	const busy = "another process is at work here"
	held := func(s Shard) (free func()) {
		free, err := enter(context.Background(), c, Options{Dir: dir, Shard: s})
		if err != nil {
			t.Fatal(err)
		}
		return free
	}
	free := held(whole)
	for _, s := range []Shard{whole, {1, 4}} {
		refused(t, try(s), busy)
	}
	free()
	free = held(Shard{1, 4})
	for _, s := range []Shard{whole, {1, 4}} {
		refused(t, try(s), busy)
	}
	if err := try(Shard{2, 4}); err != nil {
		t.Errorf("shard 2/4 beside 1/4: %v", err)
	}
	free()
	if err := try(whole); err != nil {
		t.Errorf("after all have gone: %v", err)
	}
}

// More seeds, longer lists and further cells go on where a smaller sweep ended:
// only what is new runs, and the files are those of a sweep begun so large.
func TestGrow(t *testing.T) {
	grown := []string{
		"seeds = 3\nlearner.kappa = 2\n",
		"seeds = 6\nlearner.kappa = 2\n",
		"seeds = 6\nlearner.kappa = [1, 2, 4]\n", // whose ids are new
		"seeds = [1, 2, 3, 4, 5, 6, 9]\nlearner.kappa = [1, 2, 4]\nlearner.algorithm = [\"paper\", \"priced\"]\n",
	}
	dir := t.TempDir()
	for i, ran := range []int{3, 3, 12, 24} {
		c := mustLoad(t, grown[i])
		rep := mustRun(t, c, Options{Dir: dir})
		if rep.Ran != ran || rep.Missing != 0 {
			t.Errorf("step %d: %+v; want %d runs", i, rep, ran)
		}
		_, fresh := swept(t, grown[i])
		sameFiles(t, finals(t, dir), finals(t, fresh))
	}
	before := finals(t, dir)
	const large = "seeds = 9\nlearner.kappa = [1, 2, 4]\nlearner.algorithm = [\"paper\", \"priced\"]\n"
	for text, want := range map[string]string{
		grown[2]:                              `learner.algorithm: "paper", "priced" there, "paper" here; seeds: 1, 2, 3 and 4 more there, 1, 2, 3 and 3 more here;`,
		large + "steps = 7\n":                 "holds another configuration, kappa: steps: 100 there, 7 here; name another directory with -out",
		strings.Replace(large, "4]", "8]", 1): "learner.kappa: 1, 2, 4 there, 1, 2, 8 here;",
		"seeds = 9\n[[cells]]\nlearner.kappa = [1, 2]\nlearner.algorithm = [\"paper\", \"priced\"]\n[[cells]]\nlearner.kappa = 4\n": "cell priced/kappa/4 is there and not here;",
	} {
		_, err := Run(context.Background(), mustLoad(t, text), Options{Dir: dir})
		refused(t, err, want)
	}
	sameFiles(t, finals(t, dir), before)
	// Another metric compares the same runs.
	if rep := mustRun(t, mustLoad(t, grown[3], "metric=crawls"), Options{Dir: dir}); rep.Ran != 0 || !rep.Final {
		t.Errorf("another metric: %+v", rep)
	}
}

// To see whether a directory is of this sweep takes no time that grows with the
// square of the seeds: here that would be a minute and more.
func TestManySeeds(t *testing.T) {
	c := mustLoad(t, "seeds = 400000\n")
	if what := c.lacks(c); what != "" {
		t.Errorf("lacks of itself: %.80s", what)
	}
}

// A line that was damaged on disk is reported and its run repeated.
func TestDamage(t *testing.T) {
	c, dir := swept(t, kappaTOML)
	want := finals(t, dir)
	path := filepath.Join(dir, "records", "0000-of-0001.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte(`"cell":"kappa/2"`)) + 70
	b[at] ^= 1
	b = b[:len(b)-7] // and the last line torn
	writeFile(t, path, b)
	rep := mustRun(t, c, Options{Dir: dir})
	if rep.Ran != 2 || len(rep.Damaged) != 1 || !strings.Contains(rep.Damaged[0], "checksum") {
		t.Errorf("report %+v", rep)
	}
	sameFiles(t, finals(t, dir), want)
}

func readCSV(t *testing.T, text string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// 10 000 cells in memory that does not grow with the length of their curves.
func TestManyCells(t *testing.T) {
	kappa := make([]float64, 100)
	for i := range kappa {
		kappa[i] = float64(i + 1)
	}
	c := mustLoad(t, fmt.Sprintf("seeds = 1\nsteps = 20000\nlearner.kappa = %s\nlearner.gamma = %s\n", list(kappa), list(kappa)))
	dir := t.TempDir()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	rep := mustRun(t, c, Options{Dir: dir, Workers: 2})
	if rep.Ran != 10_000 || !rep.Final {
		t.Fatalf("report %+v", rep)
	}
	runtime.GC()
	runtime.GC() // pools give up their buffers at the second collection
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d MB are held after the sweep", grown>>20)
	}
	// What the system gave is the peak.
	if peak := after.HeapSys; peak > 400<<20 {
		t.Errorf("heap of %d MB; want at most 400", peak>>20)
	}
}

func BenchmarkOverhead(b *testing.B) {
	kappa := make([]float64, b.N)
	for i := range kappa {
		kappa[i] = float64(i + 1)
	}
	c := mustLoad(b, "seeds = 1\nlearner.kappa = "+list(kappa)+"\n")
	b.ResetTimer()
	mustRun(b, c, Options{Dir: b.TempDir(), Workers: 1})
}
