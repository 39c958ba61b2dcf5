package native

import (
	"fmt"
	"math"
	"time"

	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// feeds is a crawler of sources that come and go. Times are Unix times in seconds.
type feeds struct{ *learner.Crawler }

func newFeeds(text []byte) (f *feeds, err error) {
	var s struct {
		Start, Epoch, HalfLife, Budget float64
		PerGroup                       int
		Learner                        string
		Settings                       map[string]any
		Seed                           uint64
	}
	if err := decode(text, &s); err != nil {
		return nil, err
	}
	o := learner.CrawlerOptions{
		Learner: s.Learner, Epoch: span(s.Epoch), Budget: s.Budget, PerGroup: s.PerGroup, HalfLife: span(s.HalfLife), Seed: s.Seed,
	}
	if len(s.Settings) > 0 {
		p := player{Name: s.Learner, Settings: s.Settings}
		if _, o.Settings, err = p.configure(env.LevelOnline); err != nil {
			return nil, err
		}
	}
	c, err := learner.NewCrawler(moment(s.Start), o)
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

func span(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func moment(unix float64) time.Time { return time.Unix(0, 0).Add(span(unix)).UTC() }

// unix returns a Unix time, nil for none.
func unix(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	return result.Ptr(float64(t.UnixNano()) / 1e9)
}

// found are items: when each was published, and its worth, nil for what is told later.
type found []struct {
	Published float64
	Worth     *float64
}

func (f found) items() (items []learner.Item) {
	for _, x := range f {
		it := learner.Item{Published: moment(x.Published), Worth: math.NaN()}
		if x.Worth != nil {
			it.Worth = *x.Worth
		}
		items = append(items, it)
	}
	return items
}

func (f *feeds) describe() any { return nil }

// call is [Call] about feeds.
func (f *feeds) call(what string, text []byte, m *Made) error {
	var s struct {
		Name, Outcome, Group                       string
		Now, Cost, Shortest, Longest, NotBefore, V float64
		N                                          int
		Items                                      found
		Truncated                                  bool
	}
	if err := decode(text, &s); err != nil {
		return err
	}
	switch what {
	case "add":
		return f.Add(s.Name, learner.Source{Cost: s.Cost, Group: s.Group, Shortest: span(s.Shortest), Longest: span(s.Longest)})
	case "remove":
		return f.Remove(s.Name)
	case "budget":
		return f.SetBudget(s.V)
	case "select":
		m.Answer = append([]string{}, f.Select(moment(s.Now), s.N)...)
	case "update":
		outcome, ok := map[string]learner.Outcome{"found": learner.Found, "unchanged": learner.Unchanged, "failed": learner.Failed}[s.Outcome]
		if !ok {
			return fmt.Errorf("outcome is %q; allowed are found, unchanged and failed", s.Outcome)
		}
		c := learner.Crawl{Source: s.Name, At: moment(s.Now), Outcome: outcome, Items: s.Items.items(), Truncated: s.Truncated}
		if s.NotBefore != 0 {
			c.NotBefore = moment(s.NotBefore)
		}
		return f.Update(c)
	case "report":
		return f.Report(s.Name, moment(s.Now), s.Items.items()...)
	case "belief":
		b, err := f.Belief(s.Name)
		if err != nil {
			return err
		}
		m.Answer = []*float64{&b.Items, &b.Interest, result.Ptr(b.HalfLife.Seconds()), unix(b.Last), unix(b.Due), &b.Price}
	case "length":
		m.Answer = f.Len()
	case "save":
		data, err := f.Save()
		m.Answer = string(data)
		return err
	default:
		return unknown(what)
	}
	return nil
}
