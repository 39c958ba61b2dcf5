package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"ephemera/live/schedule"
)

// format is that of the records that this program writes. It grows when an earlier program
// could not read them. Open takes a store of each earlier format up, and from then on it
// is of this one.
//
//  1. There was no kindWait; kindHold had only the end of the hold, and kindQueue only the
//     limits. Stores of before formats had numbers are of it.
//  2. What keys.go says.
const format = 2

// ErrNewer is returned by [Open] where a later version of this program wrote the store.
var ErrNewer = errors.New("the format of its records is newer than this program")

// openFormat finds out whether the records are of a format that this program reads, takes up
// those of an earlier one, and writes which it is.
func (s *Store) openFormat() error {
	value, err := s.get([]byte{kindFormat})
	if err != nil {
		return err
	}
	found := int64(1)
	if value != nil {
		_, err = readNumbers(value, &found)
	}
	switch {
	case err != nil || found == format:
		return err
	case found > format:
		return fmt.Errorf("%w: it is %d; this one reads up to %d. "+
			"What can be done: start the version that wrote it, or one that is later; or take its URLs along with "+
			"-export there and -import here, in another directory", ErrNewer, found, format)
	}
	return s.upgrade()
}

// upgrade makes a store of format 1 one of format 2: it finds out what URLs wait, and counts
// them. It looks at each URL once. Where it was cut short the next start begins it anew, as the
// number is what it writes last.
func (s *Store) upgrade() error {
	limits := map[string]schedule.Limits{} // by key
	err := s.scan([]byte{kindQueue, 0}, []byte{kindQueue + 1}, func(record, value []byte) (bool, error) {
		var l schedule.Limits
		var most int64
		_, err := readNumbers(value, &l.Delay, &l.Blocked, &l.Last, &most)
		l.Most = uint32(most)
		limits[string(record)] = l
		return true, err
	})
	if err != nil {
		return err
	}
	s.batch.DeleteRange([]byte{kindWait}, []byte{kindWait + 1}, nil)
	var newest, commits int64
	var urls int
	var queue []byte // the key of that of the last URL
	var k schedule.Kept
	var failed error
	err = s.URLs("", "", func(r *Record) bool {
		if of := appendQueue(nil, kindQueue, r.Crawl, &r.Key); !bytes.Equal(of, queue) {
			s.upgradeQueue(queue, k)
			queue, k = of, schedule.Kept{Limits: schedule.Limits{Delay: -1}}
			if l, there := limits[string(of)]; there {
				k.Limits = l
			}
			delete(limits, string(of))
		}
		urls++
		newest = max(newest, r.Created)
		u := &schedule.URL{Name: r.URL, Due: r.Due, Created: r.Created}
		hold := appendURL(nil, kindHold, r.ID)
		var until int64
		value, err := s.get(hold)
		if err == nil && value != nil {
			_, err = readNumbers(value, &until)
		}
		switch {
		case r.Due == schedule.Completed:
			k.Completed++
		case until > 0:
			s.batch.Set(hold, appendNumbers(nil, until, u.Due, u.Created/1000), nil)
		default:
			if k.Waiting == 0 || r.Due < k.First {
				k.First = r.Due
			}
			k.Waiting++
			s.setWait(r.ID, u)
		}
		if s.batch.Len() > largeBatch && err == nil {
			err = s.batch.Commit(pebble.NoSync)
			s.batch = s.db.NewBatch()
		}
		failed = err
		return err == nil
	})
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	s.upgradeQueue(queue, k)
	for key, l := range limits { // of queues without a URL
		s.upgradeQueue([]byte(key), schedule.Kept{Limits: l})
	}
	value, err := s.get([]byte{kindCommits})
	if err == nil && value != nil {
		_, err = readNumbers(value, &commits)
	}
	if err != nil {
		return err
	}
	s.batch.Set([]byte{kindCommits}, appendNumbers(nil, commits, newest), nil)
	s.batch.Set([]byte{kindFormat}, appendNumbers(nil, format), nil)
	if err := s.batch.Commit(pebble.Sync); err != nil {
		return err
	}
	s.batch = s.db.NewBatch()
	clear(s.inBatch)
	if urls > 0 {
		s.opt.Log.Info("the store is of this version's format now, which earlier ones do not read",
			"format", format, "urls", urls)
	}
	return nil
}

// upgradeQueue keeps a queue, if there is one.
func (s *Store) upgradeQueue(key []byte, k schedule.Kept) {
	if key != nil {
		s.batch.Set(key, appendKept(nil, k), nil)
	}
}
