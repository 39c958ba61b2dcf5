// Package plain writes what people read.
package plain

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Count returns a number of things: 1 seed, 20 seeds.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Text returns a text as a terminal may show it: names of sources, instances and files
// may hold what moves its cursor, sets its title or turns the direction of writing. What
// does not print is written as Go writes it, such as \x1b.
func Text(text string) string {
	if strings.IndexFunc(text, isOdd) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if one := text[:size]; r == utf8.RuneError && size == 1 || isOdd(r) {
			b.WriteString(strings.Trim(strconv.QuoteToASCII(one), `"`))
		} else {
			b.WriteString(one)
		}
		text = text[size:]
	}
	return b.String()
}

func isOdd(r rune) bool { return !unicode.IsPrint(r) && r != '\u00a0' }

// Lines is Text for a text of several lines.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Text(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Natural returns a text that stands among others as people order names: 2 before 10, whatever the case.
func Natural(name string) string {
	var key strings.Builder
	for name != "" {
		if n := digits(name); n > 0 {
			number := strings.TrimLeft(name[:n], "0")
			key.WriteByte('0')
			key.WriteRune(rune(len(number))) // the longer number is the larger one
			key.WriteString(number)
			name = name[n:]
			continue
		}
		letter, n := utf8.DecodeRuneInString(name)
		key.WriteRune(unicode.ToLower(letter))
		name = name[n:]
	}
	return key.String()
}

// digits returns how many a text begins with.
func digits(s string) (n int) {
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
