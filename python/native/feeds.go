package native

import (
	"math"
	"time"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/learner"
)

// feeds is a crawler of sources that come and go. Times are dates, and lengths of time
// nanoseconds.
type feeds struct{ *learner.Crawler }

func newFeeds(text []byte) (*feeds, error) {
	var s struct {
		Start time.Time
		learner.CrawlerOptions
		Settings map[string]any
	}
	err := decode(text, &s)
	if err == nil && len(s.Settings) > 0 {
		var e *experiments.Entry
		if e, err = experiments.Find(s.Learner); err == nil {
			s.CrawlerOptions.Settings, err = e.Configure(env.LevelOnline, s.Settings)
		}
	}
	if err != nil {
		return nil, err
	}
	c, err := learner.NewCrawler(s.Start, s.CrawlerOptions)
	return &feeds{c}, err
}

// loadFeeds takes up a crawler from the contents of a state file.
func loadFeeds(text []byte) (*feeds, error) {
	s, err := learner.Decode(text)
	if err != nil {
		return nil, err
	}
	c, err := s.Crawler()
	return &feeds{c}, err
}

func (f *feeds) describe() any { return nil }

// call is [Made.Call] about feeds. A worth of −1 is one that is told later.
func (f *feeds) call(what string, text []byte, m *Made) (err error) {
	var s struct {
		Name  string
		Rules learner.Source
		Crawl learner.Crawl
		V     float64
		N     int
	}
	if err := decode(text, &s); err != nil {
		return err
	}
	c := s.Crawl
	for k := range c.Items {
		if c.Items[k].Worth == -1 {
			c.Items[k].Worth = math.NaN()
		}
	}
	switch what {
	case "add":
		err = f.Add(s.Name, s.Rules)
	case "remove":
		err = f.Remove(s.Name)
	case "budget":
		err = f.SetBudget(s.V)
	case "select":
		m.Answer = append([]string{}, f.Select(c.At, s.N)...)
	case "update":
		err = f.Update(c)
	case "report":
		err = f.Report(c.Source, c.At, c.Items...)
	case "belief":
		m.Answer, err = f.Belief(s.Name)
	case "length":
		m.Answer = f.Len()
	case "save":
		var data []byte
		data, err = f.Save()
		m.Answer = string(data)
	default:
		err = unknown(what)
	}
	return err
}
