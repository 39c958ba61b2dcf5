package feed

import (
	"strings"

	"golang.org/x/net/html"
)

const maxSummary = 500 // characters

// Summary returns the beginning of what is written as HTML, as text in one line.
func Summary(markup string) string { return excerpt(asText(markup), maxSummary) }

// asText returns the beginning of what is written as HTML, as text, longer than any excerpt of it.
func asText(markup string) string {
	var words strings.Builder
	z := html.NewTokenizer(strings.NewReader(markup))
	hidden := "" // name of the element whose text nobody sees
	for words.Len() < 8*maxSummary {
		switch z.Next() {
		case html.ErrorToken:
			return words.String()
		case html.TextToken:
			if hidden == "" {
				words.Write(z.Text())
			}
		case html.StartTagToken:
			switch name, _ := z.TagName(); string(name) {
			case "script", "style":
				hidden = string(name)
			case "a", "abbr", "b", "code", "em", "i", "small", "span", "strong", "sub", "sup", "u":
			default:
				words.WriteByte(' ') // a paragraph, a line, a picture
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == hidden {
				hidden = ""
			}
		case html.SelfClosingTagToken:
			words.WriteByte(' ')
		}
	}
	return words.String()
}

// excerpt returns the beginning of a text, in one line, with … where it was cut.
func excerpt(s string, most int) string {
	r := []rune(inLine(s))
	if len(r) <= most {
		return string(r)
	}
	return strings.TrimSpace(string(r[:most-1])) + "…"
}
