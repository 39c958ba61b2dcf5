package feed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// agentToken is what robots.txt calls this crawler.
const agentToken = "ephemera"

const (
	robotsBytes = 512 << 10 // that are read; RFC 9309 asks for 500 KiB
	robotsKept  = 24 * time.Hour
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

// robots returns the rules that hold for an address.
func (f *Fetcher) robots(ctx context.Context, u *url.URL) (*Robots, error) {
	origin := u.Scheme + "://" + strings.ToLower(u.Host)
	unlock, err := f.lock(ctx, "robots of "+origin)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r := &Robots{}
	if err := f.recall("robots/"+origin, r); err != nil || f.Now().Before(r.Until) {
		return r, err
	}
	at, err := url.Parse(origin + "/robots.txt")
	if err != nil {
		return nil, failf("%.80q is no address", origin)
	}
	*r = Robots{Until: f.Now().Add(robotsKept)} // without rules if it is "unavailable"
	for range maxRedirects + 1 {
		res, err := f.request(ctx, at, nil, nil, robotsBytes)
		var e *failure
		switch {
		case errors.As(err, &e):
			return nil, &failure{"robots.txt: " + e.text, e.wait}
		case err != nil:
			return nil, err
		case res.status == http.StatusTooManyRequests || res.status >= 500: // "unreachable"
			return nil, &failure{"its robots.txt cannot be read: " + http.StatusText(res.status), f.wait(res)}
		case redirects(res.status):
			if at, err = at.Parse(res.header.Get("Location")); err != nil {
				return nil, failf("its robots.txt redirects to no address")
			}
			continue
		}
		if res.status == http.StatusOK {
			r.Rules = ParseRobots(res.body)
		}
		break
	}
	return r, f.keep("robots/"+origin, r)
}

// ParseRobots returns the rules of a robots.txt for this crawler: those of all
// groups that name it, or else of those for "*".
func ParseRobots(text []byte) []RobotsRule {
	var named, others []RobotsRule
	found := false
	mine, any, inRules := false, false, false
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r == '\n' || r == '\r' }) {
		line, _, _ = strings.Cut(line, "#")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		switch key {
		case "user-agent":
			if inRules {
				mine, any, inRules = false, false, false
			}
			if strings.EqualFold(product.FindString(value), agentToken) {
				mine, found = true, true
			}
			any = any || value == "*"
		case "allow", "disallow":
			inRules = true
			if value == "" {
				continue
			}
			rule := RobotsRule{Path: escape(value), Allow: key == "allow"}
			if mine {
				named = append(named, rule)
			}
			if any {
				others = append(others, rule)
			}
		}
	}
	if found {
		return named
	}
	return others
}

// product is the product token that a user-agent line begins with.
var product = regexp.MustCompile(`^[A-Za-z_-]*`)

// octet is an octet that may be spelled in more than one way.
var octet = regexp.MustCompile(`%[0-9A-Fa-f]{2}|[^!-~]`)

// escape returns a path in one spelling: octets beyond US-ASCII are escaped,
// escapes of unreserved characters are not.
func escape(path string) string {
	return octet.ReplaceAllStringFunc(path, func(s string) string {
		if raw, err := url.PathUnescape(s); err == nil {
			s = raw
		}
		return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	})
}

// Allow reports whether the rules allow an address: the longest rule that matches
// decides, and of equally long ones that which allows.
func (r *Robots) Allow(u *url.URL) bool {
	path := cmp.Or(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	path = escape(path)
	longest, allow := -1, true
	for _, rule := range r.Rules {
		if n := len(rule.Path); (n > longest || n == longest && rule.Allow) && matches(rule.Path, path) {
			longest, allow = n, rule.Allow
		}
	}
	return allow
}

// matches reports whether a path begins as the rule says, in which * stands for
// anything and a $ at the end for the end.
func matches(rule, path string) bool {
	rule, whole := strings.CutSuffix(rule, "$")
	parts := strings.Split(rule, "*")
	path, ok := strings.CutPrefix(path, parts[0])
	for k, part := range parts[1:] {
		if whole && k == len(parts)-2 {
			return ok && strings.HasSuffix(path, part)
		}
		var found bool
		_, path, found = strings.Cut(path, part)
		ok = ok && found
	}
	return ok && (!whole || path == "")
}
