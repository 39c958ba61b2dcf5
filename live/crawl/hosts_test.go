package crawl

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"ephemera/live/feed"
)

// TestRobotsKept: of the origins of a host the newest rules are kept, up to a size together;
// those of other hosts stay, and a day later none of these is left.
func TestRobotsKept(t *testing.T) {
	s := simulate(t, newReferee(t, 30).Server, address(0))
	origin := func(host string, port int) *url.URL {
		return must(url.Parse(fmt.Sprintf("http://%s:%d", host, port)))
	}
	large := new(feed.Robots)
	check(large.UnmarshalText([]byte(strings.Repeat("-/"+strings.Repeat("x", 97)+"\n", feed.MaxRobots/400))))
	check(s.KeepRobots(origin("b.test", 1), large))
	for port := range 10 {
		s.now = s.now.Add(time.Minute)
		check(s.KeepRobots(origin("a.test", port), large))
	}
	kept := func() (ports []int) {
		for port := range 10 {
			if must(s.Robots(origin("a.test", port))) != nil {
				ports = append(ports, port)
			}
		}
		return ports
	}
	if ports := kept(); fmt.Sprint(ports) != "[7 8 9]" || must(s.Robots(origin("b.test", 1))) == nil {
		t.Errorf("the rules of ports %v are kept", ports)
	}
	s.pass(robotsKept + time.Hour)
	check(s.store.Values(robotsPrefix, "", func(name string, _ []byte) bool {
		if !strings.Contains(name, address(0)[len("http://"):][:5]) {
			t.Errorf("%s is still kept", name)
		}
		return true
	}))
}
