package learner_test

import (
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/learner"
)

// A program keeps copies of three pages. Of each crawl it says whether the page is another
// than at the crawl before, and a sitemap that the front page may have changed.
func ExampleCrawler_pages() {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	c, err := learner.NewCrawler(now, learner.CrawlerOptions{
		Epoch: time.Hour, Budget: .5, Objective: env.Objective{Law: env.LawFreshness},
	})
	if err != nil {
		panic(err)
	}
	c.Add("front", learner.Source{Importance: 3, Cost: .5})
	c.Add("about", learner.Source{Cost: .5})
	c.Add("clock", learner.Source{Cost: .5}) // it never is as it was
	copies, crawls := map[string]uint64{}, map[string]int{}
	for end := now.AddDate(0, 0, 60); now.Before(end); now = now.Add(10 * time.Minute) {
		if inSitemap("front", now) {
			if err := c.Ping("front", now); err != nil {
				panic(err)
			}
		}
		for _, name := range c.Select(now, 1) {
			h := fnv.New64a()
			io.WriteString(h, fetchPage(name, now))
			changed := h.Sum64() != copies[name]
			copies[name] = h.Sum64()
			crawls[name]++
			if err := c.Update(learner.Crawl{Source: name, At: now, Changed: changed}); err != nil {
				panic(err)
			}
		}
	}
	front, err := c.Belief("front")
	fmt.Println(crawls)
	fmt.Printf("front changes %.2f times an hour, error %v\n", front.Changes, err)
	// Output:
	// map[about:99 clock:199 front:1142]
	// front changes 0.18 times an hour, error <nil>
}

// fetchPage stands for a crawl. The front page changes every six hours, the page about the
// site every 20 days.
func fetchPage(name string, now time.Time) string {
	every := map[string]time.Duration{"front": 6 * time.Hour, "about": 480 * time.Hour, "clock": time.Minute}[name]
	return fmt.Sprint(name, now.Truncate(every))
}

// inSitemap reports whether a sitemap has said in the last ten minutes that a page has
// changed.
func inSitemap(name string, now time.Time) bool {
	return now.Day()%2 == 0 && fetchPage(name, now) != fetchPage(name, now.Add(-10*time.Minute))
}

// TestPagesInDocs: the loop of the page is the one of the example.
func TestPagesInDocs(t *testing.T) {
	source, err := os.ReadFile("pages_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/freshness.md")
	if err != nil {
		t.Fatal(err)
	}
	_, loop, _ := strings.Cut(string(source), "func ExampleCrawler_pages() {\n")
	loop, _, _ = strings.Cut(loop, "\t// Output:")
	shown := strings.Contains(string(page), loop)
	if lines := strings.Count(loop, "\n"); lines > 40 || !shown {
		t.Errorf("the loop has %d lines, at most 40, and docs/freshness.md holds it: %v", lines, shown)
	}
}
