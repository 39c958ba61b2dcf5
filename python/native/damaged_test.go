package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/learner"
)

// alter calls do for every change of one value in a document of JSON; set puts
// another one in the place of v.
func alter(v any, path string, set func(any), do func(path string)) {
	changes := []any{nil, -1.0, 3.0, 1e6, 1e15, 1e300, []any{}}
	if list, ok := v.([]any); ok {
		changes = append(changes, list[:len(list)/2], append(list[:len(list):len(list)], list...))
	}
	for _, to := range changes {
		set(to)
		do(fmt.Sprintf("%s = %.60v", path, to))
	}
	set(v)
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			alter(x, path+"."+key, func(to any) { v[key] = to }, do)
		}
	case []any:
		for i := range v {
			if i == 0 || i == len(v)-1 {
				alter(v[i], fmt.Sprintf("%s[%d]", path, i), func(to any) { v[i] = to }, do)
			}
		}
	}
}

// crawls crawls by a learner, each crawl bringing one item.
func crawls(t *testing.T, c *crawler, epochs int) {
	var state []float64
	if c.level == env.LevelObserved {
		state = []float64{5, 5, 5, 5}
	}
	for range epochs {
		pick, err := c.selectSources(state)
		var got []env.Crawled
		for _, i := range pick {
			got = append(got, env.Crawled{Source: i, Interest: 3, Items: []env.Item{{Age: .5, Interest: 3}}})
		}
		if err == nil {
			err = c.update(got, state)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c.describe()
}

// feed has a program crawl, every ten minutes.
func feed(t *testing.T, f *learner.Crawler, from time.Time) {
	for k := range 30 {
		now := from.Add(time.Duration(k) * 10 * time.Minute)
		for _, name := range f.Select(now, 3) {
			items := []learner.Item{{Published: now.Add(-time.Minute), Worth: new(2.)}}
			if err := f.Update(learner.Crawl{Source: name, At: now, Items: items}); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Belief(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A saved learner of which one value was altered is refused or goes on: it never panics
// and never takes long.
func TestAlteredStates(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	saved := map[string]func() (string, error){}
	for _, x := range [][2]string{
		{"lspe", "online"},
		{"lspe", "observed"},
		{"forecast", "online"},
		{"paper", "model"},
	} {
		saved[strings.Join(x[:], " ")] = func() (string, error) {
			c := built(t, "paper", strings.Join(x[:], "@"))
			crawls(t, c, 60)
			return c.save()
		}
	}
	for _, name := range []string{"lspe", "forecast"} {
		saved["feeds "+name] = func() (string, error) {
			twoHours := env.Objective{Law: env.LawExponential, Time: 2 * time.Hour}
			f, err := learner.NewCrawler(begin,
				learner.CrawlerOptions{Learner: name, Epoch: time.Hour, Objective: twoHours, Budget: 2})
			if err != nil {
				t.Fatal(err)
			}
			for _, source := range []string{"a", "b", "c"} {
				if err := f.Add(source, learner.Source{Group: "g" + source, Longest: 5 * time.Hour}); err != nil {
					t.Fatal(err)
				}
			}
			feed(t, f, begin)
			var state strings.Builder
			err = f.Save(&state)
			return state.String(), err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(saved)) {
		t.Run(name, func(t *testing.T) {
			text, err := saved[name]()
			if err != nil {
				t.Fatal(err)
			}
			var docs []map[string]any
			for line := range strings.Lines(text) {
				var doc map[string]any
				if err := json.Unmarshal([]byte(line), &doc); err != nil {
					t.Fatal(err)
				}
				docs = append(docs, doc)
			}
			refused, gone := 0, 0
			try := func(doc map[string]any, key string) {
				if key == "config" || key == "format" || key == "version" {
					return
				}
				alter(doc[key], key, func(to any) { doc[key] = to }, func(path string) {
					defer func() {
						if p := recover(); p != nil {
							t.Errorf("%s: panic: %v", path, p)
						}
					}()
					var lines [][]byte
					for _, doc := range docs {
						line, err := json.Marshal(doc)
						if err != nil {
							t.Fatal(err)
						}
						lines = append(lines, line)
					}
					body := bytes.Join(lines, []byte("\n"))
					began := time.Now()
					s, err := learner.Decode(body)
					if err == nil && s.Crawls == nil {
						var c *crawler
						if c, err = loadCrawler(string(body)); err == nil {
							crawls(t, c, 30)
						}
					} else if err == nil {
						var c *learner.Crawler
						if c, err = s.Crawler(); err == nil {
							feed(t, c, begin.Add(5*time.Hour))
						}
					}
					if refused++; err == nil {
						gone++
					}
					if took := time.Since(began); took > time.Minute {
						t.Errorf("%s: %v", path, took)
					}
				})
			}
			for _, doc := range docs {
				for _, key := range slices.Sorted(maps.Keys(doc)) {
					try(doc, key)
				}
			}
			if refused == gone || gone == 0 {
				t.Errorf("of %d altered states %d go on", refused, gone)
			}
		})
	}
}
