package crawl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"ephemera/live/feed"
	"ephemera/live/hostname"
	"ephemera/live/store"
)

// The crawler is the [feed.Memory] of its fetcher.
var _ feed.Memory = (*Crawler)(nil)

const (
	blockedPrefix = "blocked/" // and the host
	robotsPrefix  = "robots/"  // host, a space and the origin
	robotsKept    = 24 * time.Hour
)

// block is until when a host is to be left alone.
type block struct {
	Asked time.Time `json:"told"` // when the host asked for that
	Until time.Time `json:"until"`
}

// UnmarshalJSON reads what MarshalJSON writes, and the end alone as earlier versions did.
func (b *block) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &b.Until)
	}
	type plain block
	return json.Unmarshal(data, (*plain)(b))
}

func blockValue(host string, b block) (store.Value, error) {
	data, err := json.Marshal(b)
	return store.Value{Name: blockedPrefix + host, Data: data}, err
}

// loadHosts takes up which hosts are to be left alone.
func (c *Crawler) loadHosts() error {
	var bad error
	err := c.store.Values(blockedPrefix, "", func(name string, data []byte) bool {
		var b block
		bad = json.Unmarshal(data, &b)
		c.blocked[strings.TrimPrefix(name, blockedPrefix)] = b
		return bad == nil
	})
	if err != nil {
		return err
	}
	return bad
}

// Left implements [feed.Memory].
func (c *Crawler) Left(host string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocked[host].Until.Sub(c.clock())
}

// Leave implements [feed.Memory].
func (c *Crawler) Leave(host string, wait time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	b := block{now, now.Add(wait)}
	c.blocked[host] = b
	value, err := blockValue(host, b)
	if err != nil {
		return err
	}
	return c.store.Set(value)
}

func robotsOf(u *url.URL) string {
	return robotsPrefix + hostname.Of(u.Hostname()) + " " + u.Scheme + "://" + strings.ToLower(u.Host)
}

// Rules are kept as a line with the time until which they are, and their text.

func readRobots(value []byte) (until time.Time, text []byte, err error) {
	line, text, _ := bytes.Cut(value, []byte("\n"))
	err = until.UnmarshalText(line)
	return until, text, err
}

func robotsValue(name string, until time.Time, text []byte) (v store.Value, err error) {
	line, err := until.MarshalText()
	return store.Value{Name: name, Data: slices.Concat(line, []byte("\n"), text)}, err
}

// Robots implements [feed.Memory].
func (c *Crawler) Robots(origin *url.URL) (*feed.Robots, error) {
	value, err := c.store.Value(robotsOf(origin))
	if err != nil || value == nil {
		return nil, err
	}
	c.mu.Lock()
	now := c.clock()
	c.mu.Unlock()
	until, text, err := readRobots(value)
	if left := until.Sub(now); err != nil || left <= 0 || left > robotsKept {
		return nil, err
	}
	rules := new(feed.Robots)
	return rules, rules.UnmarshalText(text)
}

// KeepRobots implements [feed.Memory]. Of the origins of a host it keeps the newest, in
// [feed.MaxRobots] together.
func (c *Crawler) KeepRobots(origin *url.URL, rules *feed.Robots) error {
	text, err := rules.MarshalText()
	if err != nil {
		return err
	}
	name := robotsOf(origin)
	c.mu.Lock()
	defer c.mu.Unlock()
	value, err := robotsValue(name, c.clock().Add(robotsKept), text)
	if err != nil {
		return err
	}
	type kept struct {
		name  string
		until time.Time
		size  int
	}
	var others []kept
	host, _, _ := strings.Cut(name, " ")
	err = c.store.Values(host+" ", "", func(name string, data []byte) bool {
		if until, _, err := readRobots(data); err == nil && name != value.Name {
			others = append(others, kept{name, until, len(data)})
		}
		return true
	})
	if err != nil {
		return err
	}
	values := []store.Value{value}
	slices.SortFunc(others, func(a, b kept) int { return b.until.Compare(a.until) })
	size := len(value.Data)
	for _, o := range others {
		if size += o.size; size > feed.MaxRobots {
			values = append(values, store.Value{Name: o.name})
		}
	}
	return c.store.Set(values...)
}

// sweep forgets what hosts asked for and no longer holds.
func (c *Crawler) sweep(now time.Time) error {
	var values []store.Value
	for host, b := range c.blocked {
		if !b.Until.After(now) {
			delete(c.blocked, host)
			values = append(values, store.Value{Name: blockedPrefix + host})
		}
	}
	err := c.store.Values(robotsPrefix, "", func(name string, data []byte) bool {
		if until, _, err := readRobots(data); err != nil || !until.After(now) { // or of an earlier version
			values = append(values, store.Value{Name: name})
		}
		return true
	})
	if err != nil {
		return err
	}
	return c.store.Set(values...)
}

// setHosts has what hosts asked for go with the clock, and returns it as it is kept.
func (c *Crawler) setHosts(s shift) (values []store.Value, err error) {
	for host, b := range c.blocked {
		if b.Asked.IsZero() || s.move(&b.Asked) {
			s.move(&b.Until)
			c.blocked[host] = b
			value, bad := blockValue(host, b)
			if err = errors.Join(err, bad); bad == nil {
				values = append(values, value)
			}
		}
	}
	var bad error
	failed := c.store.Values(robotsPrefix, "", func(name string, data []byte) bool {
		until, text, err := readRobots(data)
		if read := until.Add(-robotsKept); err == nil && s.move(&read) {
			var value store.Value
			if value, bad = robotsValue(name, read.Add(robotsKept), text); bad == nil {
				values = append(values, value)
			}
		}
		return bad == nil
	})
	if bad != nil {
		bad = fmt.Errorf("robots.txt: %w", bad)
	}
	return values, errors.Join(err, failed, bad)
}
