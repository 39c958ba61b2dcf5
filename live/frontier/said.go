package frontier

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"ephemera/learner"
	pb "ephemera/live/frontier/urlfrontier"
)

// Metadata of StormCrawler that tell how a fetch ended.
const (
	metaStatus     = "fetch.statusCode"
	metaErrors     = "fetch.error.count" // there after a fetch that failed, and gone after one that did not
	metaErrorCause = "error.cause"       // likewise
)

// said is what a client says of a fetch in the metadata of a known URL.
type said struct {
	ours      map[string][]string // ephemera.items and what else says what the fetch found
	done      bool                // the URL is not to be fetched again
	signature uint64              // hash of that of the page; 0 for none
	unchanged bool                // by the status 304
	failed    bool                // by its status
}

// read reads what a client says.
func (o *LearnOptions) read(info *pb.URLInfo) said {
	s := said{ours: map[string][]string{}}
	for key, values := range info.GetMetadata() {
		if strings.HasPrefix(key, metaOurs) {
			s.ours[key] = values.GetValues()
		}
	}
	_, s.done = s.ours[metaDone]
	for _, key := range []string{metaDone, metaState, metaQueue, metaWhy, metaPriority} {
		delete(s.ours, key)
	}
	first := func(key string) string { return strings.Join(info.GetMetadata()[key].GetValues(), "\n") }
	code := first(metaStatus)
	s.unchanged = code == "304"
	s.failed = first(metaErrors) != "" || first(metaErrorCause) != "" ||
		code != "" && !s.unchanged && !strings.HasPrefix(code, "2")
	if text := first(cmp.Or(o.Changed, metaSignature)); text != "" {
		hash := fnv.New64a()
		hash.Write([]byte(text))
		s.signature = max(1, hash.Sum64())
	}
	return s
}

// reports tells whether it says of a fetch that did not fail what that found.
func (s *said) reports() bool {
	return len(s.ours) > 0 || !s.failed && (s.signature != 0 || s.unchanged)
}

// ahead is by how much a client's clock may be ahead of this one. Items of later would for ever be
// the last ones, and all others sent again; and no ping would be news after one of later.
const ahead = 24 * time.Hour

// items reads which items a client says that a fetch found since the last one.
func items(said map[string][]string, last, now time.Time) ([]learner.Item, error) {
	for key := range said {
		if !slices.Contains([]string{metaItems, metaWorth, metaNew}, key) {
			return nil, fmt.Errorf("there is metadata %.100q; allowed are %s, %s, %s, %s and %s",
				key, metaItems, metaWorth, metaNew, metaDone, metaPing)
		}
	}
	var found []learner.Item
	worth := said[metaWorth]
	for i, text := range said[metaItems] {
		at, err := readTime(metaItems, text, now)
		if err != nil {
			return nil, err
		}
		if at.After(now) {
			at = now
		}
		item := learner.Item{Published: at}
		if i < len(worth) {
			w, err := strconv.ParseFloat(worth[i], 64)
			if err != nil || !(w >= 0 && w <= learner.MostWorth) {
				return nil, fmt.Errorf("%s is %.100q; allowed is a number, 0 to %g",
					metaWorth, worth[i], learner.MostWorth)
			}
			item.Worth = &w
		}
		found = append(found, item)
	}
	if v := said[metaNew]; len(v) > 0 && len(found) == 0 {
		n, err := strconv.Atoi(v[0])
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%s is %.100q; allowed is a number, 0 or more", metaNew, v[0])
		}
		found = evenly(min(n, mostNew), last, now)
	}
	return found, nil
}

// evenly returns so many items that were published since the last fetch, evenly. Over which time
// those of a first fetch were is not known.
func evenly(n int, last, now time.Time) (found []learner.Item) {
	if last.IsZero() {
		return nil
	}
	for i := range n {
		after := now.Sub(last) / time.Duration(2*n) * time.Duration(2*i+1) // in this order it does not overflow
		found = append(found, learner.Item{Published: last.Add(after)})
	}
	return found
}

// readTime reads when something was.
func readTime(key, text string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("%s is %.100q; allowed is a time as 2026-11-22T10:00:00Z or in Unix seconds",
				key, text)
		}
		at = time.Unix(n, 0)
	}
	if at.Sub(now) > ahead {
		return time.Time{}, fmt.Errorf("%s is %.100q, which is to come; allowed is a time up to now, in seconds",
			key, text)
	}
	return at, nil
}
