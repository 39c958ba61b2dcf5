package feed

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRuleMatches holds rules against regular expressions that say the same.
func TestRuleMatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := func(letters string) string {
		var b strings.Builder
		for range rng.IntN(8) {
			b.WriteByte(letters[rng.IntN(len(letters))])
		}
		return b.String()
	}
	matched := 0
	for range 200_000 {
		rule, path := RobotsRule{Path: text("ab**$")}, text("ab$")
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(rule.Path), `\*`, ".*")
		if start, whole := strings.CutSuffix(pattern, `\$`); whole {
			pattern = start + "$"
		}
		want := regexp.MustCompile(pattern).MatchString(path)
		if got := rule.matches(path); got != want {
			t.Fatalf("%q matches %q: %v, want %v", rule.Path, path, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 20_000 {
		t.Errorf("%d match", matched)
	}
}

// TestGroups: a rule of a group counts once, however many names the group has. With 3000 names
// and rules each, which are 60 kB, they were nine million.
func TestGroups(t *testing.T) {
	const n = 3000
	group := func(agents string, path string) string {
		return strings.Repeat(agents, n) + strings.Repeat("Disallow: /"+path+"\n", n)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"named", group("User-agent: Ephemera/1\n", "a"), "/a"},
		{"of others", group("User-agent: *\nUser-agent: other\n", "a") + "User-agent: other\nDisallow: /b\n", "/a"},
		{"several groups", "User-agent: *\nDisallow: /b\n" + group("User-agent: *\nUser-agent: ephemera\n", "a"), "/a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules := ParseRobots([]byte(tt.text))
			other := slices.ContainsFunc(rules, func(r RobotsRule) bool { return r.Path != tt.want })
			if len(rules) != n || other {
				t.Errorf("%d rules, the first of them %v; want %d for %s", len(rules), rules[:1], n, tt.want)
			}
		})
	}
}

// TestLargeRobots: of a robots.txt the first 500 kB are read, whole lines, and no more is
// kept; and 40 000 rules are held against an address without memory for each.
func TestLargeRobots(t *testing.T) {
	var b strings.Builder
	b.WriteString("User-agent: *\nDisallow: /first\n")
	for k := 0; b.Len() < 600_000; k++ {
		fmt.Fprintf(&b, "Disallow: /%d*x*y$\n", k)
	}
	b.WriteString("Disallow: /last\n")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, b.String())
			return
		}
		io.WriteString(w, example)
	}))
	defer s.Close()
	m := newMemory()
	f := &Fetcher{Timeout: time.Minute, MaxBytes: 100_000, Memory: m, Now: time.Now}
	f.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return net.Dial(network, s.Listener.Addr().String())
	}
	for _, tt := range []struct {
		path string
		want Outcome
	}{{"/feed", Found}, {"/first", Failed}, {"/last", Found}} {
		if got := f.Fetch(t.Context(), Place{URL: "http://a.test" + tt.path}); got.Outcome != tt.want {
			t.Errorf("%s: %s %v; want %s", tt.path, got.Outcome, got.Err, tt.want)
		}
	}
	rules := m.robots["a.test"]
	text, err := rules.MarshalText()
	var again Robots
	if err == nil {
		err = again.UnmarshalText(text)
	}
	if err != nil || !reflect.DeepEqual(&again, rules) || len(text) > MaxRobots || len(text) < MaxRobots/2 {
		t.Errorf("%d rules take %d bytes, and %d are read back: %v", len(rules.Rules), len(text), len(again.Rules), err)
	}
	if last := rules.Rules[len(rules.Rules)-1].Path; !strings.HasSuffix(last, "*x*y$") {
		t.Errorf("a line is cut off: %q", last)
	}
	u, _ := url.Parse("http://a.test/1234/xx/y")
	if n := testing.AllocsPerRun(3, func() { rules.Allow(u) }); n > 20 {
		t.Errorf("%v allocations for %d rules", n, len(rules.Rules))
	}
	wide := ParseRobots([]byte("User-agent: *\n" + strings.Repeat("Disallow: /"+strings.Repeat("ä", 100)+"\n", 2400)))
	if text, _ := (&Robots{wide}).MarshalText(); len(text) > MaxRobots || len(text) < MaxRobots-2000 {
		t.Errorf("%d rules take %d bytes", len(wide), len(text))
	}
	for _, bad := range []string{"/a\n", "-/a", "\n"} {
		if err := again.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
