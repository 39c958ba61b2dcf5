package estimate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ephemera/env"
)

// TestInWeek holds the part of a week to that of math.Mod, also next to its ends.
func TestInWeek(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for k := range 100_000 {
		at := math.Round(1e9 * (2*rng.Float64() - 1))
		if k%2 > 0 {
			at = week * math.Round(at/week)
		}
		switch k % 3 {
		case 1:
			at = math.Nextafter(at, math.Inf(1))
		case 2:
			at = math.Nextafter(at, math.Inf(-1))
		}
		want := math.Mod(math.Mod(at, week)+week, week)
		if got := inWeek(at); got < 0 || got >= week || math.Abs(math.Remainder(got-want, week)) > 1e-6 {
			t.Fatalf("%v: %v, want %v", at, got, want)
		}
	}
}

// Epochs that are counted in strides are the same as those counted one by one, however long
// an epoch is, and whichever crawl of an epoch comes first.
func TestEpochsBack(t *testing.T) {
	for _, length := range []float64{60, 977, 3600, 3601} {
		e := New(env.Terms{Start: 1_700_001_234, Length: length}, 0, true)
		for _, epoch := range []int{5, 5000} {
			for _, n := range []int{stride + 1, 0, 1, stride - 1, 7*stride + 3, stride, 40 * stride} {
				var want profile
				for k := range n {
					for _, bin := range e.clock.at(epoch - k) {
						want[bin]++
					}
				}
				if got := e.epochsBack(epoch, n); got != want {
					t.Errorf("%d epochs of %v s up to epoch %d: bins %v, want %v", n, length, epoch, got, want)
				}
			}
		}
	}
}

// TestEpochsFarBack: an item that is dated 1970 takes neither long nor much memory, and its epochs
// are spread over the bins as those of whole weeks.
func TestEpochsFarBack(t *testing.T) {
	for _, length := range []float64{1e-3, 1, 60, 977, 3600} {
		e := New(env.Terms{Start: 1_700_001_234, Length: length}, 0, true)
		n := int(1.7e9 / length)
		got := e.epochsBack(0, n)
		if length < .5 { // less than a week was counted
			continue
		}
		for _, cycle := range cycles[:2] {
			for bin := cycle[0]; bin < cycle[1]; bin++ {
				if of := float64(got[bin]) / float64(n) * float64(cycle[1]-cycle[0]); math.Abs(of-1) > .01 {
					t.Errorf("epochs of %v s: bin %d has %v of its share", length, bin, of)
				}
			}
		}
	}
}

// TestImportInUse: estimates that are in use forget what they had reckoned when they take up others.
func TestImportInUse(t *testing.T) {
	begin := func(hour int) *Estimates {
		e := New(env.Terms{Length: 3600, Costs: []float64{1}}, 0, true)
		e.Profile[hour], e.Vary[0] = 9, .1
		e.Sources[0].Calendar.Own = e.Profile
		e.Share(0, 5, 1, 3, .9)
		return e
	}
	used, other := begin(6), begin(17)
	if err := used.Import(other.State); err != nil {
		t.Fatal(err)
	}
	_, got := used.Share(0, 5, 1, 3, .9)
	if _, want := other.Share(0, 5, 1, 3, .9); got != want {
		t.Errorf("all sources have the share %v; those that were taken up %v", got, want)
	}
}

// What a source publishes between two times is what its profile has in each second.
func TestBetween(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, length := range []float64{60, 977, 1200, 3600} {
		e := New(env.Terms{Start: 1_700_001_234, Length: length, Costs: []float64{1}}, 0, true)
		own := &e.Sources[0].Calendar.Own
		for k := range own {
			own[k] = float32(rng.ExpFloat64())
		}
		var sum float32 // the parts of an hour have the mean 1
		for _, share := range own[hours+days:] {
			sum += share / parts
		}
		for k := range parts {
			own[hours+days+k] /= sum
		}
		e.Vary[0] = 1
		for range 20 {
			epoch, n := rng.IntN(2000), float64(1+rng.IntN(int(20*3600/length)))
			if rng.IntN(2) == 0 {
				n = -n
			}
			from := e.clock.start + float64(epoch)*length
			var sum float64
			for second := range int(math.Abs(n) * length) {
				at := int(from + math.Min(0, n*length) + float64(second))
				share := own[at/3600%hours] * own[hours+(at/86400+thursday)%days]
				if length < 3600 {
					share *= own[hours+days+at%3600*parts/3600]
				}
				sum += float64(share)
			}
			want := sum / (math.Abs(n) * length)
			if got := e.Between(0, epoch, n); math.Abs(got-want) > 1e-6*want {
				t.Errorf("%v epochs of %v s from epoch %d: %v, want %v", n, length, epoch, got, want)
			}
		}
	}
}

// Hours and days make no difference here. They are not made up of crawls that see a part of an epoch, as
// that of a source which shows its last 20 items, or of items that are worth nothing any more.
func TestPartOfAnEpoch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	deadline := env.Objective{Law: env.LawDeadline, Time: 80 * time.Minute}
	for _, objective := range []env.Objective{env.Delay, deadline} {
		terms := env.Terms{Start: 1_700_000_000, Length: 4800, Costs: []float64{1, 1, 1}, Objective: objective}
		e := New(terms, 300, true)
		rate := []float64{25, 5, 5} // items per epoch
		for epoch := range 400 {
			c := env.Crawled{Source: epoch % 3, Age: min(epoch+1, 3)}
			for age := rng.ExpFloat64() / rate[c.Source]; age < float64(c.Age); {
				if c.Items = append(c.Items, env.Item{Age: age, Interest: 1}); len(c.Items) == 20 {
					c.Truncated = true
					break
				}
				age += rng.ExpFloat64() / rate[c.Source]
			}
			slices.Reverse(c.Items)
			e.Add(c, epoch)
			e.Fit()
			for k, share := range e.Profile {
				if !(share > .02 && share < 15) {
					t.Fatalf("%v, epoch %d: bin %d has the share %v", objective, epoch, k, share)
				}
			}
		}
	}
}

// Hours and days make no difference here. They are not made up either where crawls are at any time of their epochs,
// in some hours often and in others never.
func TestHoursOfCrawls(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	e := New(env.Terms{Start: 1_699_920_000, Length: 3600, Costs: []float64{1}, Objective: env.Delay}, 5000, true)
	last, item := -1, 0.
	for epoch := range 5000 {
		if hour := epoch % 24; hour < 8 || hour > 20 {
			continue
		}
		c, now := env.Crawled{Age: epoch - last}, float64(epoch)+rng.Float64()
		for ; item < now; item += rng.ExpFloat64() / 3 {
			c.Items = append(c.Items, env.Item{Age: now - item, Interest: 1})
		}
		e.Add(c, epoch)
		e.Fit()
		last = epoch
	}
	for hour, share := range e.Profile[:hours] {
		if math.Abs(float64(share)-1) > .05 {
			t.Errorf("hour %d has the share %v; want 1", hour, share)
		}
	}
}
