// Bench compares policies: what each earns in the same worlds, with intervals,
// against exact Whittle and against the bound that no policy exceeds.
//
//	go run ./cmd/bench
//	go run ./cmd/bench -random 50,10,30
//	go run ./cmd/bench -trace posts.csv.gz -epoch 1h -decay 0.175 -budget 5
//	go run ./cmd/bench -preset papers
//
// Results go to stdout, progress to stderr. It exits with 0 when all went
// well, 2 when it was called wrongly, 1 when something else failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ephemera/cmd/internal/cli"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/papers"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
	"ephemera/learner"
)

const about = `Bench compares policies in the same worlds under the same seeds: reward with a
95 % interval, the difference to exact Whittle, crawls per epoch and the share
of the bound. Without a flag: every policy that applies to Table I, 20 seeds.
With -preset papers: every figure that the papers print, measured and judged.`

func main() { cli.Main("bench", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("bench", about)
	var (
		scene                 cli.Scene
		output                cli.Output
		algo                  cli.Algorithm
		steps, seeds, workers int
		seed                  uint64
		policies, random      string
		out, preset, shard    string
	)
	scene.Define(f)
	algo.Define(f)
	f.Group("Comparison", func() {
		f.Choice(&preset, "preset", "", "`name` of a fixed set of runs: papers measures and judges every figure of the papers and draws the figures of TCNS into -out", "papers")
		f.StringVar(&policies, "policies", "", "`names` to compare, separated by commas; by default all that apply. learning and learned stand for the learner of -algorithm; another learner goes by its name, and file:DIR is what train learned in that directory")
		f.StringVar(&random, "random", "", "`N,M,count`: compare on that many instances of N sources and budget M, instead of -instance; the family is lognormal, or FAMILY:N,M,count")
		f.Count(&steps, "steps", 10000, 1, "`epochs` of every run; on a recording at most, and by default, all of its measured part")
		f.Count(&seeds, "seeds", 20, 1, "`count` of seeds; with -preset papers 200 unless given")
		f.Uint64Var(&seed, "seed", 1, "`number` of the first seed")
		f.Count(&workers, "workers", cli.Cores, 1, "`count` of runs at once; the results do not depend on it")
		f.StringVar(&shard, "shard", "", "`I/N`, with -preset papers and -out: measure every N-th seed only, from number I of 0 to N-1 on")
	})
	output.Define(f, func() {
		f.StringVar(&out, "out", "", "`directory` to write result.json, result.md, runs.csv, command.txt and timing.json to, with -preset papers the drawn figures and what each seed gave, which is not measured again (default "+picturesDir+"); created if missing")
	})
	if done, err := f.ParseAll(args, false, stdout); done || err != nil {
		return err
	}
	if seeds > maxSeeds {
		return cli.Usagef("-seeds is %d; allowed are 1 to %d", seeds, maxSeeds)
	}
	show, clear := output.Progress(stderr, "runs")
	if f.Given("preset") {
		if !f.Given("seeds") {
			seeds = papers.DefaultSeeds
		}
		return reproduce(ctx, f, out, shard, output.Format(), papers.Options{Seeds: seeds, Seed: seed, Steps: steps, Workers: workers, Progress: show}, clear, stdout)
	}
	level := algo.Level()
	scenes, err := scenesOf(ctx, f, &scene, random, level)
	if err != nil {
		return err
	}
	if scenes[0].Epochs > 0 && !f.Given("steps") {
		steps = 0
	}
	contenders, err := choose(policies, scenes[0], level, &algo)
	if err != nil {
		return err
	}
	compared, err := experiments.Comparison{
		Scenes: scenes, Level: level, Contenders: contenders,
		Epochs: steps, Seeds: seeds, Seed: seed, Workers: workers, Progress: show,
	}.Run(ctx)
	clear()
	if err != nil {
		return err
	}
	r := &compared.Report
	r.Notes = append(notes(r, len(scenes), scenes[0].Epochs == 0), compared.Left...)
	if out != "" {
		if err := keep(out, args, compared); err != nil {
			return fmt.Errorf("-out: %w", err)
		}
	}
	return errors.Join(r.Write(stdout, output.Format()), compared.Failed)
}

// scenesOf returns the one scene of the flags, or the instances of -random.
func scenesOf(ctx context.Context, f *cli.Flags, scene *cli.Scene, random string, level env.Level) ([]experiments.Scene, error) {
	if !f.Given("random") {
		s, err := scene.Open(ctx, f, level)
		return []experiments.Scene{s}, err
	}
	if f.Given("instance") || f.Given("budget") || f.Given("trace") {
		return nil, cli.Usagef("-random names its own instances and budget; leave out -instance, -budget and -trace")
	}
	family, rest, ok := strings.Cut(random, ":")
	if !ok {
		family, rest = "lognormal", random
	}
	part := strings.Split(rest, ",")
	bad := cli.Usagef("-random is %q; allowed is N,M,count or FAMILY:N,M,count, such as 50,10,30", random)
	if len(part) != 3 {
		return nil, bad
	}
	n, errN := strconv.Atoi(part[0])
	m, errM := strconv.ParseFloat(part[1], 64)
	count, errC := strconv.Atoi(part[2])
	if errN != nil || errM != nil || errC != nil || !(m > 0) || count < 1 {
		return nil, bad
	}
	if n > maxRandom/count {
		return nil, cli.Usagef("-random is %q; allowed are at most %d sources in all instances together", random, maxRandom)
	}
	scenes := make([]experiments.Scene, count)
	for k := range scenes {
		world, in, err := scene.Named(f, fmt.Sprintf("%s:%d:%d", family, n, k+1), m, level)
		if err == nil {
			scenes[k], err = world.Open(ctx, in, level)
		}
		if err != nil {
			return nil, cli.Usagef("-random: %w", err)
		}
	}
	return scenes, nil
}

// maxRandom is the number of sources of all instances of -random together, and
// maxSeeds that of seeds, that fit in memory.
const (
	maxRandom = 10_000_000
	maxSeeds  = 100_000
)

// choose returns the contenders of -policies, or all that apply.
func choose(list string, s experiments.Scene, level env.Level, algo *cli.Algorithm) ([]experiments.Contender, error) {
	named, err := algo.Learner(level) // checked also where no learner is compared
	if err != nil {
		return nil, err
	}
	names := strings.Split(list, ",")
	if list == "" {
		names = []string{"learned"}
		for _, e := range experiments.Catalogue {
			if e.Name != named.Name && e.WhyNot(s, level) == "" {
				names = append(names, e.Name)
			}
		}
	}
	var chosen []experiments.Contender
	var entries []*experiments.Entry
	seen := map[string]bool{}
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "learning" {
			name = "learned" // one contender gives both rows
		}
		x := experiments.Contender{Entry: named, Chosen: name == "learned", Optional: list == "" && name != "learned"}
		switch {
		case x.Chosen && seen[name]:
			continue
		case seen[name]:
			return nil, cli.Usagef("-policies names %q twice", name)
		case !x.Chosen:
			if x.Entry, err = find(name); err != nil {
				return nil, err
			}
		}
		seen[name] = true
		if why := x.Entry.WhyNot(s, level); why != "" {
			return nil, cli.Usagef("-policies: %q does not apply to %s with knowledge %s: %s", name, s.Instance.ID, level, why)
		}
		chosen, entries = append(chosen, x), append(entries, x.Entry)
	}
	if algo.Named() && !seen["learned"] {
		return nil, cli.Usagef("-algorithm says what learning and learned stand for, which -policies does not name")
	}
	settings, err := algo.Configure(level, entries...)
	for i := range settings {
		chosen[i].Settings = settings[i]
	}
	return chosen, err
}

// find returns an entry of the catalogue, or of file:DIR what was learned there.
func find(name string) (*experiments.Entry, error) {
	if dir, ok := strings.CutPrefix(name, "file:"); ok {
		saved, err := learner.Load(dir)
		if err != nil {
			return nil, fmt.Errorf("-policies: %w", err)
		}
		return experiments.SavedEntry(name, saved), nil
	}
	e, err := experiments.Find(name)
	if err != nil {
		return nil, cli.Usagef("-policies: %w, learning, learned and file:DIR", err)
	}
	return e, nil
}

// notes are the sentences below the table.
func notes(r *result.Report, instances int, seeded bool) []string {
	line := fmt.Sprintf("%s, knowledge %s, budget %v, %d epochs, %s from %d", r.Instance, r.Knowledge, r.Budget, r.Steps, result.Count(r.Seeds, "seed"), r.Seed)
	if instances > 1 {
		line += fmt.Sprintf(", %d instances", instances)
	}
	all := []string{line + r.BoundNote() + "."}
	if len(r.Results) > 0 && r.Results[0].Lo == nil {
		over := "over blocks of seven days and need at least %d of them in the measured part"
		if instances > 1 {
			over = "over instances and need at least %d"
		} else if seeded {
			over = "over seeds and need at least %d"
		}
		all = append(all, fmt.Sprintf("No intervals: they are "+over+".", stats.MinSeeds))
	}
	if slices.ContainsFunc(r.Results, func(row result.Row) bool { return row.Over > 0 }) {
		all = append(all, "Policies that crawl more than the budget stand last and are not ranked.")
	}
	return all
}

// keep writes what -out keeps.
func keep(dir string, args []string, c *experiments.Compared) error {
	timeless := c.Report
	timeless.Timing = nil
	t := result.Table{Header: []string{"policy", "instance", "seed", "epochs", "reward", "crawls", "cost", "over_budget", "overrun"}}
	for _, r := range c.Runs {
		t.Add(r.Policy, r.Instance, strconv.FormatUint(r.Seed, 10), strconv.Itoa(r.Epochs),
			result.Exact(r.Reward), result.Exact(r.Crawls), result.Exact(r.Cost), result.Exact(r.Over), result.Exact(r.Overrun))
	}
	var out cli.Results
	out.Print("result.json", &timeless, result.JSON)
	out.Print("result.md", &timeless, result.Markdown)
	out.Print("runs.csv", &t, result.CSV)
	out.Command("bench", args)
	out.Timing(c.Report.Timing)
	return out.Put(dir)
}
