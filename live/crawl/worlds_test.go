package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ephemera/env"
)

// madeDays is how long a recording that is made up lasts.
const madeDays = 60

// made is a feed that is made up: items per day, each of which starts a burst of so many in
// the mean, within hours; at night and at weekends it has a part of its rate.
type made struct {
	perDay, burst, within float64
	wave, noon, weekend   float64
	born, dies            float64 // days
}

// kindsMade draws feeds by the name of their recording.
var kindsMade = map[string]func(k int, r *rand.Rand) made{
	"poisson": func(int, *rand.Rand) made { return made{} },
	"bursts":  func(_ int, r *rand.Rand) made { return bursty(r) },
	"hours":   func(_ int, r *rand.Rand) made { return byDay(r) },
	"mixed": func(k int, r *rand.Rand) (m made) {
		switch k % 4 {
		case 1:
			m = bursty(r)
		case 2:
			m = byDay(r)
		case 3:
			switch k / 4 % 4 {
			case 0, 1:
				m.dies = -1 // dead all the time
			case 2:
				m.dies = madeDays * r.Float64()
			case 3:
				m.born = madeDays * r.Float64()
			}
		}
		return m
	},
}

func bursty(r *rand.Rand) made {
	return made{burst: math.Exp(1 + 1.5*r.Float64()), within: math.Exp(r.NormFloat64())}
}

func byDay(r *rand.Rand) made {
	return made{wave: .5 + .5*r.Float64(), noon: 24 * r.Float64(), weekend: r.Float64()}
}

// makeRecording returns the recording of 100 feeds that are made up, of 4 items a day in the
// median.
func makeRecording(name string, seed uint64) *env.Recording {
	const start = 1704067200 // a Monday
	type row struct {
		at   float64
		feed int
	}
	var rows []row
	var names []string
	for k := range 100 {
		names = append(names, fmt.Sprintf("%02d", k))
		r := rand.New(rand.NewPCG(seed, uint64(k)))
		m := kindsMade[name](k, r)
		m.perDay = 4 * math.Exp(1.3*r.NormFloat64()) / max(1, m.burst)
		dies := cmp.Or(m.dies, madeDays)
		top := m.perDay / 24 * (1 + m.wave) // per hour
		for at := 24 * m.born; at < 24*dies; at += r.ExpFloat64() / top {
			share := (1 + m.wave*math.Cos(2*math.Pi*(math.Mod(at, 24)-m.noon)/24)) / (1 + m.wave)
			if m.wave > 0 && int(at/24)%7 >= 5 {
				share *= m.weekend
			}
			if r.Float64() > share {
				continue
			}
			rows = append(rows, row{at, k})
			for m.burst > 1 && r.Float64() < 1-1/m.burst {
				rows = append(rows, row{at + m.within*r.ExpFloat64(), k})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	b.WriteString("source,published_unix,id\n")
	for k, r := range rows {
		if r.at < 24*madeDays {
			fmt.Fprintf(&b, "%s,%d,%d\n", names[r.feed], start+int64(3600*r.at), k)
		}
	}
	rec := must(env.PublishedColumns.Parse(context.Background(), name, strings.NewReader(b.String())))
	return rec.With(names)
}

// openRecording returns the part of a recording that is compared on: up to 200 days of the
// second half of one of the data, or of the first; or one that is made up, of a seed from
// 9001 on, or from 1.
func openRecording(t *testing.T, name string, choosing bool, seed uint64) *env.Recording {
	t.Helper()
	if kindsMade[name] != nil {
		if !choosing {
			seed += 9000
		}
		rec := makeRecording(name, seed)
		return rec.Between(rec.First/3600*3600+3660, rec.Last)
	}
	rec := readRecording(t, name)
	from, middle := rec.First, rec.First+(rec.Last-rec.First)/2
	if !choosing {
		from, middle = middle, rec.Last
	}
	from = from/3600*3600 + 3660 // epochs begin a minute after the hour, as those of newLearner
	return rec.Between(from, min(middle, from+200*86400))
}

// readRecording returns one of the data, and skips the test where they are absent.
func readRecording(t *testing.T, name string) *env.Recording {
	t.Helper()
	rec, err := env.ReadRecording(t.Context(), "../../../shared/data/trace_"+name+".csv.gz")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip(err)
	}
	check(err)
	return rec
}
