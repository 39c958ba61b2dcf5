package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// format is that of the records that this program writes. It grows when an earlier program
// could not read them. Open takes a store of each earlier format up, and from then on it
// is of this one.
//
//  1. What keys.go says. Stores of before formats had numbers are of it.
const format = 1

// ErrNewer is returned by [Open] where a later version of this program wrote the store.
var ErrNewer = errors.New("the format of its records is newer than this program")

// openFormat finds out whether the records are of a format that this program reads, and
// writes which it is. It changes nothing else.
func (s *Store) openFormat() error {
	value, err := s.get([]byte{kindFormat})
	if err != nil {
		return err
	}
	found := int64(format)
	if value == nil {
		return s.db.Set([]byte{kindFormat}, appendNumbers(nil, format), pebble.Sync)
	}
	if _, err := readNumbers(value, &found); err != nil {
		return err
	}
	if found > format {
		return fmt.Errorf("%w: it is %d; this one reads up to %d. "+
			"What can be done: start the version that wrote it, or one that is later; or take its URLs along with "+
			"-export there and -import here, in another directory", ErrNewer, found, format)
	}
	return nil
}
