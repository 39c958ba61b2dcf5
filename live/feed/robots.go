package feed

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

const (
	agentToken = "ephemera"     // what robots.txt calls this crawler
	robotsKept = 24 * time.Hour // for which it is not asked for again
)

// Robots are the rules of a robots.txt for this crawler.
type Robots struct {
	Until time.Time    `json:"until"` // they are asked for again
	Rules []RobotsRule `json:"rules,omitempty"`
}

// RobotsRule allows or disallows paths.
type RobotsRule struct {
	Path  string `json:"path"`
	Allow bool   `json:"allow,omitempty"`
}

// allowed returns an error unless robots.txt allows an address.
func (f *Fetcher) allowed(ctx context.Context, u *url.URL) error {
	origin := u.Scheme + "://" + strings.ToLower(u.Host)
	defer f.lock("robots of " + origin)()
	var rules Robots
	if err := f.recall("robots/"+origin, &rules); err != nil {
		return err
	}
	if !f.Now().Before(rules.Until) {
		client := http.Client{Transport: f, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return http.ErrUseLastResponse
			}
			return nil
		}}
		var r *http.Response
		ask, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+"/robots.txt", nil)
		if err == nil {
			r, err = client.Do(ask)
		}
		if err != nil {
			e := f.reason(err)
			return &failure{"robots.txt: " + e.text, e.wait}
		}
		if r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500 { // "unreachable"
			return &failure{"its robots.txt cannot be read: " + r.Status, f.wait(r.Header)}
		}
		text, _ := io.ReadAll(r.Body) // none if it is "unavailable", which allows all
		rules = Robots{Until: f.Now().Add(robotsKept), Rules: ParseRobots(text)}
		if err := f.keep("robots/"+origin, rules); err != nil {
			return err
		}
	}
	if !rules.Allow(u) {
		return failf("its robots.txt does not allow it")
	}
	return nil
}

// ParseRobots returns the rules of a robots.txt for this crawler: those of all
// groups that name it, or else of those for "*".
func ParseRobots(text []byte) []RobotsRule {
	rules := map[string][]RobotsRule{} // by agent
	var agents []string                // of the group
	inRules := false
	for line := range bytes.FieldsFuncSeq(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), func(r rune) bool { return r == '\n' || r == '\r' }) {
		line, _, _ := strings.Cut(string(line), "#")
		key, value, _ := strings.Cut(line, ":")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		switch key {
		case "user-agent":
			if inRules {
				agents, inRules = nil, false
			}
			agent := strings.ToLower(cmp.Or(product.FindString(value), value))
			agents = append(agents, agent)
			rules[agent] = append(rules[agent], []RobotsRule{}...) // from now on it is named
		case "allow", "disallow":
			inRules = true
			for _, agent := range agents {
				if value != "" {
					rules[agent] = append(rules[agent], RobotsRule{Path: escape(value), Allow: key == "allow"})
				}
			}
		}
	}
	if own, named := rules[agentToken]; named {
		return own
	}
	return rules["*"]
}

// product is the product token that a user-agent line begins with.
var product = regexp.MustCompile(`^[A-Za-z_-]+`)

// octet is an octet that may be spelled in more than one way.
var octet = regexp.MustCompile(`%[0-9A-Fa-f]{2}|[^!-~]`)

// escape returns a path in one spelling: octets beyond US-ASCII are escaped,
// escapes of unreserved characters are not.
func escape(path string) string {
	return octet.ReplaceAllStringFunc(path, func(s string) string {
		raw, _ := url.PathUnescape(s) // which is an escape, or needs one
		return strings.ReplaceAll(url.QueryEscape(raw), "+", "%20")
	})
}

// Allow reports whether the rules allow an address: the longest rule that matches
// decides, and of equally long ones that which allows.
func (r *Robots) Allow(u *url.URL) bool {
	path := escape(u.RequestURI())
	longest, allow := -1, true
	for _, rule := range r.Rules {
		if n := len(rule.Path); (n > longest || n == longest && rule.Allow) && rule.matches(path) {
			longest, allow = n, rule.Allow
		}
	}
	return allow
}

// matches reports whether a path begins as the rule says, in which * stands for
// anything and a $ at the end for the end.
func (r *RobotsRule) matches(path string) bool {
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(r.Path), `\*`, ".*")
	if start, whole := strings.CutSuffix(pattern, `\$`); whole {
		pattern = start + "$"
	}
	matched, _ := regexp.MatchString(pattern, path)
	return matched
}
