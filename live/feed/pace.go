package feed

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/mmcdole/gofeed/rss"
)

// Pace is when a feed is not to be asked for, as it says itself: by ttl, skipHours and
// skipDays of RSS 2.0 and the updates of RSS 1.0's module Syndication.
type Pace struct {
	Every     time.Duration `json:"every,omitempty"`
	SkipHours uint32        `json:"skip_hours,omitempty"` // bit h is the hour from h o'clock, UTC
	SkipDays  uint8         `json:"skip_days,omitempty"`  // bit d is that day from Sunday, UTC
}

// periods are those of sy:updatePeriod.
var periods = map[string]time.Duration{
	"hourly":  time.Hour,
	"daily":   24 * time.Hour,
	"weekly":  7 * 24 * time.Hour,
	"monthly": 30 * 24 * time.Hour,
	"yearly":  365 * 24 * time.Hour,
}

func paceOf(f *gofeed.Feed) (p Pace) {
	said := func(name string) string {
		for _, e := range f.Extensions["sy"][name] {
			return strings.ToLower(strings.TrimSpace(e.Value))
		}
		return ""
	}
	period := periods[said("updatePeriod")]
	frequency, err := strconv.ParseUint(said("updateFrequency"), 10, 31)
	if err == nil && period == 0 {
		period = periods["daily"]
	}
	p.Every = period / time.Duration(max(1, frequency))
	r, ok := f.OriginalFeed().(*rss.Feed)
	if !ok {
		return p
	}
	minutes, _ := strconv.ParseUint(strings.TrimSpace(r.TTL), 10, 64) // the greatest if it is too large
	p.Every = max(p.Every, time.Duration(min(minutes, uint64(maxWait/time.Minute)))*time.Minute)
	for _, hour := range r.SkipHours {
		if h, err := strconv.ParseUint(strings.TrimSpace(hour), 10, 5); err == nil && h <= 24 {
			p.SkipHours |= 1 << (h % 24) // 24 is midnight, too
		}
	}
	for day := range time.Saturday + 1 {
		named := func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), day.String()) }
		if slices.ContainsFunc(r.SkipDays, named) {
			p.SkipDays |= 1 << day
		}
	}
	return p
}

// Next returns the first time from a given one on that lies in no hour and on no day that
// is left out; the given one if there is none in a week.
func (p *Pace) Next(from time.Time) time.Time {
	at := from.UTC()
	for range 8 * 24 {
		if p.SkipHours>>at.Hour()&1 == 0 && p.SkipDays>>at.Weekday()&1 == 0 {
			return at
		}
		at = at.Truncate(time.Hour).Add(time.Hour)
	}
	return from
}
