package feed

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

const (
	agentToken = "ephemera" // what robots.txt calls this crawler

	// MaxRobots is how many bytes of a robots.txt are read, as RFC 9309 has it, and how many
	// of its rules are kept of a host.
	MaxRobots = 500 << 10
)

// Robots are the rules of a robots.txt for this crawler.
type Robots struct{ Rules []RobotsRule }

// RobotsRule allows or disallows paths.
type RobotsRule struct {
	Path  string // of printable US-ASCII
	Allow bool
}

// MarshalText writes a line for each rule: its path behind + or −.
func (r *Robots) MarshalText() (text []byte, err error) {
	for _, rule := range r.Rules {
		sign := byte('-')
		if rule.Allow {
			sign = '+'
		}
		text = append(append(append(text, sign), rule.Path...), '\n')
	}
	return text, nil
}

// UnmarshalText reads what MarshalText wrote.
func (r *Robots) UnmarshalText(text []byte) error {
	r.Rules = nil
	for line := range strings.Lines(string(text)) {
		path, ended := strings.CutSuffix(line, "\n")
		if !ended || path == "" || path[0] != '+' && path[0] != '-' {
			return fmt.Errorf("rules of a robots.txt have the line %.20q; allowed is a path behind + or -", line)
		}
		r.Rules = append(r.Rules, RobotsRule{path[1:], path[0] == '+'})
	}
	return nil
}

// allowed returns an error unless robots.txt allows an address.
func (f *Fetcher) allowed(ctx context.Context, u *url.URL) error {
	origin := u.Scheme + "://" + strings.ToLower(u.Host)
	defer f.lock("robots of " + origin)()
	rules, err := f.Memory.Robots(u)
	if err != nil {
		return err
	}
	if rules == nil {
		client := http.Client{Transport: beginning{f}, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
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
			e := *f.reason(err)
			e.text = "robots.txt: " + e.text
			return &e
		}
		if r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500 { // "unreachable"
			return &failure{
				text: "its robots.txt cannot be read: " + r.Status, retry: min(f.retry(r.Header), MaxRetry),
			}
		}
		text, _ := io.ReadAll(r.Body) // none if it is "unavailable", which allows all
		rules = &Robots{ParseRobots(text)}
		if err := f.Memory.KeepRobots(u, rules); err != nil {
			return err
		}
	}
	if !rules.Allow(u) {
		return failf("its robots.txt does not allow it")
	}
	return nil
}

// beginning makes requests of which the beginning of an answer is enough.
type beginning struct{ *Fetcher }

// RoundTrip implements [http.RoundTripper]. A line that is cut off is left out.
func (b beginning) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.ask(r, MaxRobots)
	if err != nil {
		return nil, err
	}
	if body := res.Body.(received); body.cut {
		res.Body = io.NopCloser(bytes.NewReader(body.bytes[:1+bytes.LastIndexAny(body.bytes, "\r\n")]))
	}
	return res, nil
}

// ParseRobots returns the rules of a robots.txt for this crawler: those of all
// groups that name it, or else of those for "*". Of rules that take more than
// [MaxRobots] together, as they are spelled here, it returns the first.
func ParseRobots(text []byte) []RobotsRule {
	var own, others []RobotsRule        // of groups that name it, and of those for "*"
	var forOwn, forOthers, inRules bool // of the group
	named := false                      // by any group
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	ofLine := func(r rune) bool { return r == '\n' || r == '\r' }
	for line := range bytes.FieldsFuncSeq(text, ofLine) {
		line, _, _ := strings.Cut(string(line), "#")
		key, value, _ := strings.Cut(line, ":")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		switch key {
		case "user-agent":
			if inRules {
				forOwn, forOthers, inRules = false, false, false
			}
			agent := cmp.Or(product.FindString(value), value)
			forOthers = forOthers || agent == "*"
			forOwn = forOwn || strings.EqualFold(agent, agentToken)
			named = named || forOwn
		case "allow", "disallow":
			inRules = true
			if value == "" || !forOwn && !forOthers {
				continue
			}
			rule := RobotsRule{Path: escapeRule(value), Allow: key == "allow"}
			if forOwn {
				own = append(own, rule)
			}
			if forOthers {
				others = append(others, rule)
			}
		}
	}
	if !named {
		own = others
	}
	size := 0
	for k, rule := range own {
		if size += len(rule.Path) + 2; size > MaxRobots {
			return own[:k]
		}
	}
	return own
}

// product is the product token that a user-agent line begins with.
var product = regexp.MustCompile(`^[A-Za-z_-]+`)

// octet is an octet that may be spelled in more than one way.
var octet = regexp.MustCompile(`%[0-9A-Fa-f]{2}|[^!-~]|[*$]`)

// escapeRule is escape of the path of a rule, but for what matches reads of it.
func escapeRule(path string) string {
	path, whole := strings.CutSuffix(path, "$")
	parts := strings.Split(path, "*")
	for i, part := range parts {
		parts[i] = escape(part)
	}
	if path = strings.Join(parts, "*"); whole {
		path += "$"
	}
	return path
}

// escape returns a path in one spelling: octets beyond US-ASCII are escaped, as are * and $, which say something
// else in rules; escapes of unreserved characters are not.
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
	pattern, whole := strings.CutSuffix(r.Path, "$")
	part, rest, more := strings.Cut(pattern, "*")
	path, found := strings.CutPrefix(path, part)
	for found && more {
		if part, rest, more = strings.Cut(rest, "*"); !more && whole {
			return strings.HasSuffix(path, part)
		}
		_, path, found = strings.Cut(path, part) // the first place leaves the most for the others
	}
	return found && (!whole || path == "")
}
