package env_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// windows is a small instance with whole, fractional and short windows.
func windows() env.Instance {
	in := env.Mixed(8, 3.5, 3)
	in.ID = "windows"
	in.Sources[0].Window = 3
	in.Sources[1].Window = 2.25
	in.Sources[2].Window = 0.4
	in.Sources[3].Window = math.Inf(1)
	in.Sources[4].Window = 1
	in.Sources[5].Rate = 0
	return in
}

// everyLaw is windows with all laws, and batches.
func everyLaw() env.Instance {
	in := windows()
	in.ID = "laws"
	for i, law := range []env.Law{env.LawPower, env.LawHump, env.LawPower, env.LawHump, "", env.LawHump, env.LawPower} {
		in.Sources[i].Law = law
	}
	in.Sources[0].Shape = 3
	in.Sources[1].Batch, in.Sources[3].Batch = 5, 20
	return in
}

// changing is everyLaw in a world that changes.
func changing() env.Instance {
	in := everyLaw()
	in.ID = "changing"
	in.Sources[7].Window = math.Inf(1)
	one, two := in.Sources[1], in.Sources[4]
	one.Rate, one.Law, one.Batch = 30, env.LawExponential, 1
	two.Interest, two.Window, two.Law = 3, math.Inf(1), env.LawHump
	plain := in.Sources[7]
	plain.Decay *= 3
	in.Changes = []env.Change{
		{At: 30, Sources: []env.Source{one, two, plain}},
		{At: 47, Shuffle: true},
		{At: 200, Shuffle: true},
	}
	return in
}

func TestMeanConforms(t *testing.T) {
	for _, in := range []env.Instance{env.Paper(1), env.Mixed(20, 5, 1), everyLaw(), changing()} {
		t.Run(in.ID, func(t *testing.T) {
			envtest.World(t, func() env.World { return must(env.NewMean(in, false)) }, false)
		})
	}
	t.Run("overrun", func(t *testing.T) {
		envtest.World(t, func() env.World { return must(env.NewMean(env.Paper(2), true)) }, true)
	})
}

func TestPoissonConforms(t *testing.T) {
	slow := changing()
	for i := range slow.Sources {
		slow.Sources[i].Rate /= 10
	}
	for _, c := range []struct {
		in    env.Instance
		marks []env.Marks
	}{{env.Paper(1), allMarks}, {slow, []env.Marks{env.MarksConstant, env.MarksPerEpoch}}} {
		for _, marks := range c.marks {
			for _, o := range []env.PoissonOptions{{}, {Items: true}, {State: true}, {Items: true, State: true}} {
				o.Marks = marks
				t.Run(fmt.Sprintf("%s/%s/items=%v/state=%v", c.in.ID, marks, o.Items, o.State), func(t *testing.T) {
					envtest.World(t, func() env.World { return must(env.NewPoisson(c.in, 7, o)) }, false)
				})
			}
		}
	}
	t.Run("overrun", func(t *testing.T) {
		envtest.World(t, func() env.World {
			return must(env.NewPoisson(windows(), 7, env.PoissonOptions{Overrun: true}))
		}, true)
	})
	t.Run("no mean", func(t *testing.T) {
		envtest.World(t, func() env.World {
			return must(env.NewPoisson(slow, 7, env.PoissonOptions{Items: true, NoMean: true}))
		}, false)
	})
}

func TestReplayConforms(t *testing.T) {
	path := recording(t, 1000, false)
	for _, o := range []env.ReplayOptions{{}, {Items: true}, {State: true}, {Items: true, State: true}} {
		o.Epoch, o.Decay, o.Budget = time.Hour, 0.175, 2
		t.Run(fmt.Sprintf("items=%v/state=%v", o.Items, o.State), func(t *testing.T) {
			envtest.World(t, func() env.World {
				w, _, err := openReplay(path, o)
				return must(w, err)
			}, false)
		})
	}
	t.Run("overrun", func(t *testing.T) {
		envtest.World(t, func() env.World {
			w, _, err := openReplay(path, env.ReplayOptions{Epoch: time.Hour, Decay: 0.175, Budget: 2, Overrun: true})
			return must(w, err)
		}, true)
	})
}

// recording writes a made-up recording of some hours and returns its path.
func recording(t testing.TB, hours int, zipped bool) string {
	t.Helper()
	r := stream.New(1, stream.Test)
	var b strings.Builder
	b.WriteString("source,published_unix,utility\n")
	names := []string{"a", "b", "c", `"d, ""e"""`, "f"}
	at := 1.6e9
	for at < 1.6e9+float64(hours)*3600 {
		k := r.Intn(len(names))
		fmt.Fprintf(&b, "%s,%d,%v\n", names[k], int64(at), math.Floor(r.ExpFloat64()*100*float64(k+1)))
		at += r.ExpFloat64() * 300
	}
	name := "made.csv"
	data := []byte(b.String())
	if zipped {
		name += ".gz"
		data = gzipped(t, data)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func must[W any](w W, err error) W {
	if err != nil {
		panic(err)
	}
	return w
}
