package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func ids(c *Config) []string {
	out := make([]string, len(c.Cells))
	for i := range c.Cells {
		out[i] = c.Cells[i].ID
	}
	return out
}

func TestLoad(t *testing.T) {
	c := mustLoad(t, kappaTOML)
	if want := []string{"kappa/0.5", "kappa/1", "kappa/2", "kappa/4", "kappa/8"}; !slices.Equal(ids(c), want) {
		t.Errorf("ids %q; want %q", ids(c), want)
	}
	if c.Question != "How does κ set the number of crawls?" {
		t.Errorf("question %q", c.Question)
	}
	if c.Name != "kappa" || !slices.Equal(c.Seeds, []uint64{1, 2, 3, 4, 5, 6}) || c.Metric != "reward" || c.Reference != 2 {
		t.Errorf("name %q, seeds %v, metric %q, reference %d", c.Name, c.Seeds, c.Metric, c.Reference)
	}
	cell := c.Cells[3]
	if cell.Float("learner.kappa") != 4 || cell.Float("learner.gamma") != 0.05 || cell.Int("steps") != 100 || cell.Text("learner.algorithm") != "paper" {
		t.Errorf("cell %s: %v", cell.ID, cell.values)
	}
}

func TestGridAndList(t *testing.T) {
	for _, c := range []struct {
		name, text string
		set        []string
		want       []string
	}{
		{"grid", "learner.kappa = [1, 2]\ninstance.budget = [1, 2]\n", nil,
			[]string{"budget/1/kappa/1", "budget/1/kappa/2", "budget/2/kappa/1", "budget/2/kappa/2"}},
		{"a setting goes to the algorithms that have it", "learner = {algorithm = [\"paper\", \"whittle\"], kappa = [1, 2]}\n", nil,
			[]string{"paper/kappa/1", "paper/kappa/2", "whittle"}},
		{"list", "steps = 10\n[[cells]]\nlearner.kappa = 3\n[[cells]]\nsteps = 20\n[cells.learner]\nalgorithm = \"priced\"\nkappa = [5, 6]\n", nil,
			[]string{"paper/kappa/3", "priced/kappa/5", "priced/kappa/6"}},
		{"defaults that follow the algorithm are no axis", "learner.algorithm = [\"paper\", \"priced\"]\nsteps = [1, 2]\n", nil,
			[]string{"paper/steps/1", "paper/steps/2", "priced/steps/1", "priced/steps/2"}},
		{"one cell", "steps = 3\n", nil, []string{"paper"}},
		{"override", kappaTOML, []string{"learner.kappa=4"}, []string{"paper"}},
		{"override by a list", kappaTOML, []string{"learner.kappa = [3, 5]", "learner.algorithm=priced"}, []string{"kappa/3", "kappa/5"}},
		{"override of list entries", "[[cells]]\nlearner.kappa = 3\n[[cells]]\nlearner.kappa = 4\nsteps = 7\n", []string{"learner.kappa=1"}, []string{"steps/100", "steps/7"}},
	} {
		if got := ids(mustLoad(t, c.text, c.set...)); !slices.Equal(got, c.want) {
			t.Errorf("%s: ids %q; want %q", c.name, got, c.want)
		}
	}
}

// numbers returns 1, 2, …, n as the inside of a list.
func numbers(n int) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, "%d,", k+1)
	}
	return b.String()
}

func TestLoadErrors(t *testing.T) {
	const keys = "name, question, seeds, metric, show, reference, group, learner.algorithm, steps, instance.id, instance.budget, fail, label, learner.kappa, learner.gamma, learner.anneal"
	for _, c := range []struct {
		name, text, set string
		want            string
	}{
		{"unknown key", "seeds = 2\n[learner]\nkapa = 3\n", "", `kappa.toml:3:1: unknown key "learner.kapa"; allowed are ` + keys},
		{"unknown key in a cell", "[[cells]]\nlearner.kappa = 1\n  learner.beta = 3\n", "", `kappa.toml:3:3: unknown key "learner.beta"; allowed are ` + keys},
		{"unknown key in an inline table", "seeds = 2\nlearner = {kapa = 3}\n", "", `kappa.toml:2:12: unknown key "learner.kapa"; allowed are ` + keys},
		{"wrong type in an inline table of inline cells", "cells = [{learner = {kappa = 1}}, {learner = {kappa = \"x\"}}]\n", "", `kappa.toml:1:47: learner.kappa is "x"; allowed is a number`},
		{"unknown table", "[lerner]\nkappa = 3\n", "", `kappa.toml:1:2: unknown key "lerner"`},
		{"a value in place of a table", "seeds = 3\nlearner = 3\n", "", "kappa.toml:2:1: learner is 3; allowed is a table of the settings learner.algorithm, learner.kappa, learner.gamma, learner.anneal"},
		{"a list in place of a table", "[[instance]]\nid = \"paper\"\n", "", "kappa.toml:1:3: instance is [map[id:paper]]; allowed is a table of the settings instance.id, instance.budget"},
		{"a value in place of a cell's table", "[[cells]]\ninstance = \"wide\"\n", "", `kappa.toml:2:1: instance is "wide"; allowed is a table of the settings instance.id, instance.budget`},
		{"set a table", kappaTOML, "instance=3", "-set instance=3: instance is 3; allowed is a table of the settings instance.id, instance.budget"},
		{"cells that are no tables", "cells = [{steps = 1}, 2]\n", "", "kappa.toml:1:1: cells is [map[steps:1] 2]; allowed are tables, [[cells]]"},
		{"one table of cells", "steps = 2\n[cells]\nlearner.kappa = 3\n", "", "kappa.toml:2:2: cells is map[learner:map[kappa:3]]; allowed are tables, [[cells]]"},
		{"wrong type", "learner.kappa = \"four\"\n", "", `kappa.toml:1:1: learner.kappa is "four"; allowed is a number`},
		{"wrong type in a list", "steps = [1, 2.5]\n", "", `kappa.toml:1:1: steps is 2.5; allowed is a whole number`},
		{"wrong truth", "[[cells]]\nlearner.algorithm = \"priced\"\nlearner.anneal = 1\n", "", `kappa.toml:3:1: learner.anneal is 1; allowed is true or false`},
		{"wrong word", "instance.id = \"pape\"\n", "", `kappa.toml:1:1: instance.id is "pape"; allowed are paper, wide`},
		{"no number", "learner.kappa = [1, nan]\n", "", "kappa.toml:1:1: learner.kappa is NaN; allowed is a number"},
		{"date", "steps = 1979-05-27\n", "", "kappa.toml:1:1: steps is 1979-05-27; allowed is a whole number"},
		{"list in a list", "steps = [[1]]\n", "", "kappa.toml:1:1: steps is [1]; allowed is a whole number"},
		{"empty grid", "seeds = 2\n\nlearner.kappa = []\n", "", "kappa.toml:3:1: learner.kappa is an empty list"},
		{"out of range", "steps = 5\nlearner.kappa = [1, -1]\n", "", "kappa.toml:2:1: learner.kappa: -1; allowed is above 0"},
		{"out of range in the last of several cells", "learner.kappa = 1\n[[cells]]\nlearner.kappa = 2\n[[cells]]\nsteps = 3\n[[cells]]\n learner.kappa = -2\n", "", "kappa.toml:7:2: learner.kappa: -2; allowed is above 0"},
		{"out of range above the cells", "learner.kappa = -1\n[[cells]]\nsteps = 3\n", "", "kappa.toml:1:1: learner.kappa: -1; allowed is above 0"},
		{"same value twice", "learner.kappa = [1, 2, 1.0]\n", "", "kappa.toml:1:1: learner.kappa has 1 twice"},
		{"same cell twice", "[[cells]]\nlearner.kappa = [1, 2]\n[[cells]]\nlearner.kappa = 2\n", "", "kappa.toml: cell kappa/2 is there twice"},
		{"same id", "label = [\"a/b\", \"a_b\"]\n", "", "kappa.toml: two cells would have the id label/a_b"},
		{"seeds", "seeds = 0\n", "", "kappa.toml:1:1: seeds is 0; allowed is a number of seeds"},
		{"seeds of another type", "seeds = \"ten\"\n", "", "kappa.toml:1:1: seeds is \"ten\""},
		{"no seeds", "seeds = []\n", "", "kappa.toml:1:1: seeds is an empty list"},
		{"runs", "steps = [" + numbers(50) + "]\nseeds = 100000\n", "", "kappa.toml: cells and seeds are more than 1000000 runs"},
		{"name", "name = \"../up\"\n", "", `kappa.toml:1:1: name is "../up"; allowed is the name of a directory`},
		{"no name", "name = \"\"\n", "", `kappa.toml:1:1: name is ""`},
		{"name of another type", "name = 3\n", "", `kappa.toml:1:1: name is 3; allowed is a string`},
		{"seed twice", "seeds = [3, 4, 3]\n", "", "kappa.toml:1:1: seeds has 3 twice"},
		{"metric", "metric = \"rewards\"\n", "", `kappa.toml:1:1: metric is "rewards"; allowed are reward, crawls, ratio`},
		{"show", "show = [\"reward\", \"x\"]\n", "", `show is "x"; allowed are reward, crawls, ratio`},
		{"reference", "reference = \"kappa/3\"\nlearner.kappa = [1, 2]\n", "", `kappa.toml:1:1: reference is "kappa/3"; allowed are kappa/1, kappa/2`},
		{"group", "group = \"learner.x\"\n", "", `kappa.toml:1:1: group is "learner.x"; allowed are learner.algorithm`},
		{"setting of another algorithm", "[learner]\nalgorithm = \"whittle\"\nkappa = 3\n", "", "kappa.toml:3:1: learner.kappa is not a setting of any cell here; it belongs to learner.algorithm paper, priced"},
		{"the same in a list of two", "[[cells]]\nlearner.algorithm = [\"whittle\", \"paper\"]\nlearner.anneal = true\n", "", "kappa.toml:3:1: learner.anneal is not a setting of any cell here; it belongs to learner.algorithm priced"},
		{"set reference", kappaTOML, "reference=kappa/3", `-set reference=kappa/3: reference is "kappa/3"; allowed are kappa/0.5`},
		{"syntax", "seeds = 2\nlearner.kappa = [1,,2]\n", "", "kappa.toml:2:20: expected value"},
		{"a key with a dot in quotes", "learner.kappa = 4\n\"learner.kappa\" = 8\n", "", "kappa.toml:2:1: unknown key"},
		{"show twice", "show = [\"reward\", \"reward\"]\n", "", `kappa.toml:1:1: show has "reward" twice`},
		{"seeds of a cell", "[[cells]]\nseeds = 3\n", "", "kappa.toml:2:1: seeds is not a setting of cells; it stands at the top of the file, above the first [[cells]]"},
		{"name with a control character", "name = \"a\\nb\"\n", "", `name is "a\nb"; allowed is the name of a directory, without separators and control characters`},
		{"set with a line break", kappaTOML, "learner.kappa=[1,\n2]", "-set learner.kappa=…: one line is allowed"},
		{"key twice", "steps = 2\nsteps = 3\n", "", "kappa.toml:2:1: key steps is already defined"},
		{"list of something else", "[[sources]]\nname = 1\n", "", `kappa.toml:1:3: unknown key "sources"`},
		{"set unknown", kappaTOML, "learner.kapa=3", `-set learner.kapa=3: unknown key "learner.kapa"; allowed are ` + keys},
		{"set wrong", kappaTOML, "learner.kappa=four", `-set learner.kappa=four: learner.kappa is "four"; allowed is a number`},
		{"set nothing", kappaTOML, "learner.kappa", "want key=value"},
		{"set broken list", kappaTOML, "learner.kappa=[1,", "-set learner.kappa=[1,"},
		{"set empty list", kappaTOML, "learner.kappa=[]", "-set learner.kappa=[]: learner.kappa is an empty list"},
		{"set cells", kappaTOML, "cells=[{steps=1}]", "-set cells=[{steps=1}]: one key is allowed, not tables"},
		{"too many", "seeds = 1\nsteps = [" + numbers(1001) + "]\nlearner.kappa = [" + numbers(1001) + "]\n", "", "more than 1000000 runs"},
	} {
		var set []string
		if c.set != "" {
			set = []string{c.set}
		}
		_, err := Load(fake{}, "kappa.toml", []byte(c.text), set)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error\n\t%v\nwant\n\t%s", c.name, err, c.want)
		}
	}
}

func TestNameOfFile(t *testing.T) {
	for _, file := range []string{".toml", "a/...toml", "..toml"} {
		if _, err := Load(fake{}, file, nil, nil); err == nil || !strings.Contains(err.Error(), file+": the sweep takes its name from the file, and that would be ") {
			t.Errorf("%s: error %v", file, err)
		}
		if c, err := Load(fake{}, file, nil, []string{"name=x"}); err != nil || c.Name != "x" {
			t.Errorf("%s with a name: %v", file, err)
		}
	}
}

// Ids follow from content: neither another order nor more values change them.
func TestStableIDs(t *testing.T) {
	a, b := mustLoad(t, "learner.kappa = [1, 2, 4]\n"), mustLoad(t, "learner.kappa = [8, 4, 2, 1]\n")
	for _, id := range ids(a) {
		if !slices.Contains(ids(b), id) {
			t.Errorf("%s is not among %q", id, ids(b))
		}
	}
	if a.Hash() == b.Hash() {
		t.Error("sweeps of other cells have one hash")
	}
	if c := mustLoad(t, "learner.kappa = [1, 2, 4]\nmetric = \"crawls\"\nreference = \"kappa/2\"\n"); c.Hash() != a.Hash() {
		t.Error("the metric changed the hash of what is run")
	}
	for _, set := range []string{"seeds=2", "learner.gamma=0.1", "steps=99"} {
		if c := mustLoad(t, "learner.kappa = [1, 2, 4]\n", set); c.Hash() == a.Hash() {
			t.Errorf("%s did not change the hash", set)
		}
	}
}

func list(v []float64) string {
	parts := make([]string, len(v))
	for i, x := range v {
		parts[i] = FormatValue(x)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func TestParseShard(t *testing.T) {
	if s, err := ParseShard("3/8"); err != nil || s != (Shard{3, 8}) {
		t.Errorf("3/8: %v, %v", s, err)
	}
	for _, bad := range []string{"", "3", "8/8", "-1/8", "a/8", "1/0", "1/8/2"} {
		if s, err := ParseShard(bad); err == nil {
			t.Errorf("%q: %v and no error", bad, s)
		}
	}
	slurm := func(id, count, first, last, step string) func(string) string {
		return func(name string) string {
			return map[string]string{"SLURM_ARRAY_TASK_ID": id, "SLURM_ARRAY_TASK_COUNT": count, "SLURM_ARRAY_TASK_MIN": first, "SLURM_ARRAY_TASK_MAX": last, "SLURM_ARRAY_TASK_STEP": step}[name]
		}
	}
	for _, c := range []struct {
		id, count, first, last, step string
		want                         Shard
	}{
		{"", "", "", "", "", whole}, {"3", "8", "0", "7", "1", Shard{3, 8}}, {"8", "8", "1", "8", "1", Shard{7, 8}}, {"6", "4", "0", "6", "2", Shard{3, 4}}, {"2", "8", "", "", "", Shard{2, 8}},
	} {
		if s, err := ShardFromSlurm(slurm(c.id, c.count, c.first, c.last, c.step)); err != nil || s != c.want {
			t.Errorf("task %s of %s from %s by %s: %v, %v; want %v", c.id, c.count, c.first, c.step, s, err, c.want)
		}
	}
	// --array=1,3,7: three tasks whose numbers say nothing about which third.
	for _, bad := range []func(string) string{slurm("1", "3", "1", "7", "1"), slurm("3", "3", "1", "7", "1"), slurm("7", "3", "1", "7", "1"), slurm("x", "3", "1", "3", "1")} {
		if s, err := ShardFromSlurm(bad); err == nil {
			t.Errorf("gaps in the array: %v and no error", s)
		}
	}
}
