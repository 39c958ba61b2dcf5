package result

import (
	"fmt"
	"strings"
	"unicode"
)

// Printable returns the text with control characters, which could steer a
// terminal, and bytes that are no text spelt out; new lines and tabs stay.
func Printable(text string) string {
	odd := func(r rune) bool {
		return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.IndexFunc(text, odd) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if odd(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// markdown spells out what Markdown would take for HTML.
var markdown = strings.NewReplacer("<", "&lt;")

// MarkdownText returns a text for a Markdown file: printable, without HTML.
func MarkdownText(text string) string { return markdown.Replace(Printable(text)) }

// Shorten cuts what is too long to be read, such as a key of a megabyte, out of
// the middle of a line, and leaves less than 1000 characters.
func Shorten(line string) string {
	const most = 1000
	r := []rune(line)
	if len(r) < most {
		return line
	}
	return string(r[:most/2-2]) + " … " + string(r[len(r)-most/2+2:])
}
