package forecast

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

func objective(t testing.TB, text string) env.Objective {
	t.Helper()
	o, err := env.ParseObjective(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestObjectives: what is learned from nothing under an objective brings nearly what exact
// Whittle brings, which is given the rates. Costs are below 0: more than 1 is worse there.
func TestObjectives(t *testing.T) {
	envtest.Alone(t)
	for _, tt := range []struct {
		objective string
		within    float64
	}{
		{"interest:4h", .99},
		{"delay", 1.01},
		{"delay:0.5", 1.01},
		{"delay:2", 1.02},
		{"deadline:6h", .98},
	} {
		t.Run(tt.objective, func(t *testing.T) {
			in := env.Wide(50, 5, 3).WithObjective(objective(t, tt.objective), time.Hour)
			o := env.PoissonOptions{Marks: env.MarksPerItem}
			l := newLearner(in.Terms(), nil)
			rewards(t, in, 1, o, env.NewAgent(l), 3000)
			of := func(a env.Agent) float64 { return floats.Sum(rewards(t, in, 2, o, a, 3000)[200:]) }
			learned, whittle := of(env.NewAgent(l.Frozen())), of(env.NewAgent(baselines.NewWhittle(in)))
			share := learned / whittle
			t.Logf("%.4f of Whittle", share)
			if worse := whittle < 0 && share > tt.within || whittle > 0 && share < tt.within; worse {
				t.Errorf("what is learned brings %.4f of Whittle; want %v", share, tt.within)
			}
		})
	}
}

// TestIndexOfObjective: where all hours are alike the index is that of the harvest curve.
func TestIndexOfObjective(t *testing.T) {
	for _, text := range []string{"delay", "delay:0.5", "delay:2", "deadline:24h"} {
		terms := env.Terms{Costs: []float64{1}, Budget: 1, Objective: objective(t, text)}
		l := newLearner(terms, nil)
		items := []env.Item{{Age: 30, Interest: 2}, {Age: 3, Interest: 2}}
		l.Update([]env.Crawled{{Age: 50, Items: items}}, &env.Online{Epoch: 51, Last: []int{50}})
		s := l.optimistic(0)
		curve := index.NewCurve(s)
		for age := 1; age < 60; age++ {
			got := l.foretell(0, s, &env.Online{Epoch: 50 + age, Last: []int{50}})
			if want := curve.Index(age); math.Abs(got-want) > 1e-9*math.Abs(curve.Index(60)) {
				t.Errorf("%s, age %d: index %v; want %v", text, age, got, want)
			}
		}
		if s.Interest < .5 || s.Rate > .5 {
			t.Errorf("%s: %+v is thought of two items in 50 epochs that are worth 2", text, s)
		}
	}
}

// TestLost: where a source shows 20 items, the index has besides what is lost, as the sum over
// epochs has it of the Poisson law, or of the negative binomial one where it publishes in
// bursts. It is never less than without.
func TestLost(t *testing.T) {
	const rate, shows = .5, 20
	terms := env.Terms{Costs: []float64{1}, Budget: 1, Length: 3600, Objective: objective(t, "delay")}
	l := newLearner(terms, nil)
	of := &l.est.Sources[0]
	for _, tt := range []struct{ phi, off float64 }{{1, .03}, {4, .13}} {
		of.Shows, of.Calendar.Phi = shows, float32(tt.phi)
		least := func(mean float64) float64 {
			if tt.phi > 1 {
				return mathext.RegIncBeta(shows, mean/(tt.phi-1), 1-1/tt.phi)
			}
			return 1 - distuv.Poisson{Lambda: mean}.CDF(shows-1)
		}
		var integral float64 // of the rate of loss, items
		for age := 1; age <= 120; age++ {
			const fine = 50
			for k := range fine {
				integral += rate / fine * least(rate*(float64(age-1)+(float64(k)+.5)/fine))
			}
			x := rate * float64(age)
			want, got := 24*(x*least(x)-integral), l.lost(0, x)
			if got < 0 || math.Abs(got-want) > tt.off*24*shows {
				t.Errorf("φ %v: with %.1f items expected it has %.1f more; want %.1f", tt.phi, x, got, want)
			}
		}
	}
	if of.Shows = 0; l.lost(0, 100) != 0 {
		t.Errorf("a source that shows all has %v more", l.lost(0, 100))
	}
}

// TestFewItems: of 101 sources that show 20 items, one publishes two an hour, and would be
// crawled once a day for the least delay of what is found. It is crawled before items are lost.
func TestFewItems(t *testing.T) {
	envtest.Alone(t)
	const sources, hours = 101, 60 * 24
	rows := []string{"source,published_unix"}
	r := stream.New(5, stream.World)
	for hour := range hours {
		for i := range sources {
			rate := .1
			if i == 0 {
				rate = 2
			}
			for at := r.ExpFloat64() / rate; at < 1; at += r.ExpFloat64() / rate {
				rows = append(rows, fmt.Sprintf("%03d,%d", i, int((float64(hour)+at)*3600)))
			}
		}
	}
	rec := parsed(t, strings.Join(rows, "\n"))
	o := env.ReplayOptions{
		Epoch: time.Hour, Decay: 1e-6, Budget: 1, Items: true, Shows: 20, Scrolls: true, Part: env.PartWhole,
	}
	in, err := rec.Fit(o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := env.NewReplay(rec, in.WithObjective(env.Delay, o.Epoch), o)
	if err != nil {
		t.Fatal(err)
	}
	l := newLearner(w.Terms(), nil)
	found, all := 0, 0
	for _, p := range rec.Of(0) {
		if p.At > rec.First+hours*3600/3 {
			all++
		}
	}
	for range w.Epochs() - 1 {
		crawls, err := w.Step(l.Select(nil, &w.View().Online))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range crawls {
			if c.Source == 0 && w.View().Epoch > hours/3 {
				found += len(c.Items)
			}
		}
		l.Update(crawls, &w.View().Online)
	}
	if share := float64(found) / float64(all); share < .9 {
		t.Errorf("%.3f of what the busy source publishes is found; want .9", share)
	}
}

// TestDelayByTheHour: two sources publish as much, one of them by day and one by night. At
// the end of the day, with both crawled as long ago, that of the day is crawled: more waits
// there, and less is to come.
func TestDelayByTheHour(t *testing.T) {
	r := stream.New(1, stream.Test)
	terms := env.Terms{
		Costs: []float64{1, 1}, Budget: 1, Start: 86400 * 20000, Length: 3600, Objective: objective(t, "delay"),
	}
	l := newLearner(terms, nil)
	for epoch := 6; epoch < 24*200; epoch += 6 {
		var got []env.Crawled
		for i := range 2 {
			c := env.Crawled{Source: i, Age: 6}
			for k := 6; k > 0; k-- {
				if hour := (epoch - k + 1) % 24; (hour > 6 && hour <= 18) == (i == 0) && r.Float64() < .5 {
					c.Items = append(c.Items, env.Item{Age: float64(k) - .5, Interest: 1})
				}
			}
			got = append(got, c)
		}
		l.Update(got, &env.Online{Epoch: epoch + 1})
	}
	for _, tt := range []struct{ hour, first int }{{6, 1}, {18, 0}} {
		at := 24*200 + tt.hour
		o := &env.Online{Epoch: at, Last: []int{at - 6, at - 6}}
		day, night := l.foretell(0, l.optimistic(0), o), l.foretell(1, l.optimistic(1), o)
		if (day > 2*night) != (tt.first == 0) || (night > 2*day) != (tt.first == 1) {
			t.Errorf("at %d o'clock the source of the day has the index %v, that of the night %v; "+
				"want that of %d first", tt.hour, day, night, tt.first)
		}
	}
}
