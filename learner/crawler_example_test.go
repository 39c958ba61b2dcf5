package learner_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"ephemera/learner"
)

// A program crawls three feeds, of which one is dead and one asks for time. After two
// days one is removed and another added, and the program starts again from its saved
// state.
func ExampleCrawler() {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	c, err := learner.NewCrawler(now, learner.CrawlerOptions{Epoch: time.Hour, Budget: 1})
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"news", "busy", "dead"} {
		c.Add(name, learner.Source{Longest: 24 * time.Hour})
	}
	crawls := map[string]int{}
	for end := now.AddDate(0, 0, 4); now.Before(end); now = now.Add(time.Minute) {
		if end.Sub(now) == 48*time.Hour {
			c.Remove("busy")
			c.Add("blog", learner.Source{Shortest: 2 * time.Hour, Group: "blog.example"})
			var state bytes.Buffer // or a file
			if err := c.Save(&state); err != nil {
				panic(err)
			}
			saved, err := learner.Decode(state.Bytes())
			if err != nil {
				panic(err)
			}
			if c, err = saved.Crawler(); err != nil {
				panic(err)
			}
		}
		for _, name := range c.Select(now, 2) { // there is room for two
			crawls[name]++
			if err := c.Update(fetchFeed(name, now)); err != nil {
				panic(err)
			}
		}
	}
	news, err := c.Belief("news")
	fmt.Println(crawls)
	fmt.Printf("news has %.1f items per hour, error %v\n", news.Items, err)
	// Output:
	// map[blog:8 busy:16 dead:8 news:64]
	// news has 2.0 items per hour, error <nil>
}

// fetchFeed stands for a crawl. The news have an item every half hour and the blog one
// every ten hours.
func fetchFeed(name string, now time.Time) learner.Crawl {
	crawl := learner.Crawl{Source: name, At: now}
	every := map[string]time.Duration{"news": 30 * time.Minute, "blog": 10 * time.Hour}[name]
	switch name {
	case "dead":
		crawl.Outcome = learner.Failed
	case "busy":
		crawl.Outcome, crawl.NotBefore = learner.Failed, now.Add(3*time.Hour) // Retry-After
	default:
		for at := now.Truncate(every); at.After(fetched[name]); at = at.Add(-every) {
			if len(crawl.Items) < 20 {
				crawl.Items = append(crawl.Items, learner.Item{Published: at})
			}
		}
		crawl.Truncated = len(crawl.Items) == 20
		fetched[name] = now
	}
	return crawl
}

var fetched = map[string]time.Time{
	"news": time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
	"blog": time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC),
}

// TestLoopInDocs: the loop of the page is the one of the example.
func TestLoopInDocs(t *testing.T) {
	source, err := os.ReadFile("crawler_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/online.md")
	if err != nil {
		t.Fatal(err)
	}
	_, loop, _ := strings.Cut(string(source), "func ExampleCrawler() {\n")
	loop, _, _ = strings.Cut(loop, "\t// Output:")
	shown := strings.Contains(string(page), loop)
	if lines := strings.Count(loop, "\n"); lines > 40 || !shown {
		t.Errorf("the loop has %d lines, at most 40, and docs/online.md holds it: %v", lines, shown)
	}
}
