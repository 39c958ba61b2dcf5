// Package strict decodes TOML in which every key has to be known. The library's
// own strictness looks the place of each unknown key up from the beginning of the
// file, and a file of nothing else takes it minutes.
package strict

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// UnknownError is the error about a key that the destination does not have.
type UnknownError struct{ Key }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown key %.60q", strings.Join(e.Path, "."))
}

// Decode decodes data into what dst points to, a struct without embedded ones. Its
// errors are a
// *toml.DecodeError, an *UnknownError about the first key that is not known, or
// without a place.
func Decode(data []byte, dst any) error {
	if err := toml.Unmarshal(data, dst); err != nil {
		return err
	}
	for k := range Keys(data) {
		if !known(reflect.TypeOf(dst), k.Path) {
			return &UnknownError{k}
		}
	}
	return nil
}

// Key is a key of a document: of a table, or of a value with the keys of the
// tables that it is in.
type Key struct {
	Path         []string
	Line, Column int // from 1
}

// Keys are the keys of a document in its order.
func Keys(data []byte) iter.Seq[Key] {
	return func(yield func(Key) bool) {
		k := keys{yield: yield, data: data, line: 1}
		k.parser.Reset(data)
		var table []string
		for k.parser.NextExpression() {
			e, ok := k.parser.Expression(), true
			switch e.Kind {
			case unstable.Table, unstable.ArrayTable:
				table, ok = k.key(nil, e)
			case unstable.KeyValue:
				ok = k.value(table, e)
			}
			if !ok {
				return
			}
		}
	}
}

type keys struct {
	parser unstable.Parser
	yield  func(Key) bool
	data   []byte

	at, line, start int // offset so far, its line, and where that begins
}

// key yields the key of a table or a value in a table, and returns it.
func (k *keys) key(table []string, e *unstable.Node) (path []string, ok bool) {
	path = slices.Clip(table)
	first := -1
	for it := e.Key(); it.Next(); {
		n := it.Node()
		if first < 0 {
			first = int(n.Raw.Offset)
		}
		path = append(path, string(n.Data))
	}
	for ; k.at < first; k.at++ {
		if k.data[k.at] == '\n' {
			k.line++
			k.start = k.at + 1
		}
	}
	return path, k.yield(Key{path, k.line, first - k.start + 1})
}

// value yields the key of a value, and the keys within it.
func (k *keys) value(table []string, e *unstable.Node) bool {
	path, ok := k.key(table, e)
	return ok && k.within(path, e.Value())
}

func (k *keys) within(path []string, value *unstable.Node) bool {
	for it := value.Children(); it.Next(); {
		n, ok := it.Node(), true
		switch value.Kind {
		case unstable.InlineTable:
			ok = k.value(path, n)
		case unstable.Array:
			ok = k.within(path, n)
		}
		if !ok {
			return false
		}
	}
	return true
}

// known reports whether a type has a key.
func known(t reflect.Type, key []string) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	if len(key) == 0 || t.Kind() != reflect.Struct {
		return true // what does not fit is no matter of keys
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		if strings.EqualFold(cmp.Or(name, f.Name), key[0]) {
			return known(f.Type, key[1:])
		}
	}
	return false
}
