package feed

import (
	"cmp"
	"strings"
	"time"
)

// isDate has the elements of an item that the parser reads as dates, in small letters.
var isDate = map[string]bool{
	"pubdate": true, "date": true, "published": true, "issued": true, "updated": true, "modified": true,
}

// dates reads those of the items of a feed. The parser tries 180 layouts on each date, which costs a feed of
// many dates seconds; so it is given those that standards name in the form that it tries first, and few others.
type dates struct {
	odd int // in no form of a standard
}

// read returns a date as the parser is to be given it: none, or in one form, or as it is.
func (d *dates) read(text string) string {
	if text == "" {
		return ""
	}
	if at, is := standardDate(text); is {
		return at.UTC().Format(time.RFC3339Nano)
	}
	if d.odd++; d.odd > mostOdd {
		return ""
	}
	return text
}

// zones are those that RFC 822 names.
var zones = map[string]string{
	"GMT": "+0000", "UT": "+0000", "UTC": "+0000", "Z": "+0000",
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
}

// standardDate reads a date of RFC 3339, or of RFC 822 as RFC 1123 has it: with or without a day of the week,
// seconds and the century.
func standardDate(text string) (at time.Time, is bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true
	}
	if _, date, is := strings.Cut(text, ","); is {
		text = strings.TrimSpace(date)
	}
	k := strings.LastIndexByte(text, ' ') + 1
	text = text[:k] + cmp.Or(zones[text[k:]], text[k:])
	for _, layout := range []string{
		"2 Jan 2006 15:04:05 -0700", "2 Jan 06 15:04:05 -0700", "2 Jan 2006 15:04 -0700", "2 Jan 06 15:04 -0700",
	} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
