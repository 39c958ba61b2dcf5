package strict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

type inner struct {
	Name *string `toml:"name"`
	Any  any     `toml:"any"`
}

type outer struct {
	ID     string   `toml:"id,omitempty"`
	One    inner    `toml:"one"`
	Many   []inner  `toml:"many"`
	Number *float64 `toml:"number"`
}

// The first unknown key is the library's, with its place.
func TestAsTheLibrary(t *testing.T) {
	for _, text := range []string{
		"", "id = 'x'\nnumber = 3\n[one]\nname = 'y'\nany = {a = 1, b = [2]}\n[[many]]\n[[many]]\nname = 'z'\n",
		"x = 1", "\n\n  x.y = 1\n", "id = 'x'\n[one]\nNAME = 'y'\nother = 2\n", "[[many]]\nname = 'a'\n[[many]]\ncolour = 1\n",
		"[other]\nname = 1\n", "[[other]]\n", "one = {name = 'a', other = 3}", "[one.any.deep]\nx = 1\n[one.deep]\n",
		"many = [{name = 'a'},\n {any = 3,\n  \"a b\" = 2}]\n", "# comment\r\nid = \"\"\"\nx\n\"\"\"\r\nz=1", "[many.x]",
	} {
		var a, b outer
		want := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(&a)
		got := Decode([]byte(text), &b)
		var missing *toml.StrictMissingError
		var unknown *UnknownError
		if !errors.As(want, &missing) {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%q: %v; the library says %v", text, got, want)
			}
			continue
		}
		e := missing.Errors[0]
		line, column := e.Position()
		if !errors.As(got, &unknown) || unknown.Line != line || unknown.Column != column || !strings.HasSuffix(strings.Join(unknown.Path, "."), strings.Join(e.Key(), ".")) {
			t.Errorf("%q: %+v; the library says %d:%d %v", text, got, line, column, e.Key())
		}
	}
}

func TestKeys(t *testing.T) {
	var got []string
	for k := range Keys([]byte("a = 1\n[b]\nc.d = [{e = 1}, [{f = 2}]]\n[[g]]\n  h = 'x'\n")) {
		got = append(got, fmt.Sprint(k.Path, k.Line, k.Column))
	}
	if want := []string{"[a] 1 1", "[b] 2 2", "[b c d] 3 1", "[b c d e] 3 9", "[b c d f] 3 19", "[g] 4 3", "[g h] 5 3"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A file of nothing but unknown keys takes no time that grows with its square:
// the library, at a megabyte, takes minutes.
func TestManyUnknown(t *testing.T) {
	text := strings.Repeat("[[x]]\n", 200_000)
	if err := Decode([]byte(text), &outer{}); err == nil {
		t.Error("taken")
	}
	n := 0
	for range Keys([]byte(text)) {
		n++
	}
	if n != 200_000 {
		t.Errorf("%d keys", n)
	}
}
