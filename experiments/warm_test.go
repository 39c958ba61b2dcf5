package experiments

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"ephemera/env"
)

// A warm start plays the whole recording and counts its second part only.
func TestWarm(t *testing.T) {
	var b strings.Builder
	b.WriteString("source,published_unix\n")
	for h := range 100 {
		b.WriteString(strings.Repeat(fmt.Sprintf("a,%d\n", 3600*h), 1+h%3))
	}
	rec, err := env.PublishedColumns.Parse(context.Background(), "r.csv", strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	o := env.ReplayOptions{Epoch: time.Hour, Decay: .2, Budget: 1, Part: env.PartWhole}
	scene, err := ReplayScene(rec, o)
	if err != nil {
		t.Fatal(err)
	}
	if scene.Warm != 49 || scene.Epochs != 50 {
		t.Fatalf("%d epochs before %d that count", scene.Warm, scene.Epochs)
	}
	// By hand: one source, crawled at every epoch of the whole.
	w, err := scene.Open(1, env.LevelModel, false)
	if err != nil {
		t.Fatal(err)
	}
	var want float64
	for n := range 99 {
		got, err := w.Step([]int{0})
		if err != nil {
			t.Fatal(err)
		}
		if n >= 49 {
			want += got[0].Interest / 50
		}
	}
	updates := 0
	e := &Entry{Name: "all", New: func(k Known, _ any) (env.Agent, error) {
		return env.NewAgent[env.Online](&everything{&updates}), nil
	}}
	out, err := scene.Play(context.Background(), Play{Entry: e, Level: env.LevelModel})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(out.Learned.Reward-want) > 1e-12 || out.Learned.Epochs != 50 || updates != 99 {
		t.Errorf("%v in %d epochs, told of %d; want %v in 50, told of 99", out.Learned.Reward, out.Learned.Epochs, updates, want)
	}
}

// everything crawls its one source and counts what it is told.
type everything struct{ updates *int }

func (e *everything) Select(dst []int, _ *env.Online) []int { return append(dst, 0) }
func (e *everything) Update([]env.Crawled, *env.Online)     { *e.updates++ }
