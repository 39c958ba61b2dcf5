package store

import (
	"bytes"

	"ephemera/live/schedule"
)

// Value returns a value that was set under a name, or nil.
func (s *Store) Value(name string) ([]byte, error) {
	return s.get(append([]byte{kindValue}, name...))
}

// PutWith puts a URL as [Store.Put] does and keeps a value of the caller's under a
// name: both, or neither.
func (s *Store) PutWith(id schedule.ID, due, created int64, data []byte, name string, value []byte) (*Commit, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	s.put(id, due, created, data)
	s.batch.Set(append([]byte{kindValue}, name...), value, nil)
	return s.end(), nil
}

// Values calls yield with the values whose names begin with a prefix and are not
// before another name, in their order, until it returns false.
func (s *Store) Values(prefix, from string, yield func(name string, value []byte) bool) error {
	it, err := s.iterate(append([]byte{kindValue}, prefix...))
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.SeekGE(append([]byte{kindValue}, max(prefix, from)...)); ok; ok = it.Next() {
		if !yield(string(it.Key()[1:]), bytes.Clone(it.Value())) {
			return nil
		}
	}
	return it.Error()
}
