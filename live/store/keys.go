package store

import (
	"encoding/binary"
	"errors"

	"ephemera/live/schedule"
)

// Kinds of records. A URL's record and its hold have the same key but for the kind.
const (
	kindURL   = 'u' // due time, when it became known, the caller's data
	kindHold  = 'h' // end of the hold
	kindQueue = 'q' // schedule.Limits
	kindValue = 'v' // a value of the caller's

	kindCommits = 'c' // how many commits there were
	kindFormat  = 'f' // of the records, as a number
)

// appendQueue appends the key of a queue, or what the keys of a crawl begin with
// if key is nil. Lengths stand first, so no name is the beginning of another.
func appendQueue(dst []byte, kind byte, crawl string, key *string) []byte {
	dst = append(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(len(crawl)))
	dst = append(dst, crawl...)
	if key != nil {
		dst = binary.AppendUvarint(dst, uint64(len(*key)))
		dst = append(dst, *key...)
	}
	return dst
}

func appendURL(dst []byte, kind byte, id schedule.ID) []byte {
	return append(appendQueue(dst, kind, id.Crawl, &id.Key), id.URL...)
}

// after returns the end of the range of keys that begin with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; ; i-- { // ends: the kind is below 255
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}

var errRecord = errors.New("store: a record is not of the form that this program writes")

// names reads crawl and key of a record, and what follows them.
func names(record []byte) (crawl, key, rest []byte, err error) {
	rest = record[1:]
	for _, name := range []*[]byte{&crawl, &key} {
		n, size := binary.Uvarint(rest)
		if size <= 0 || uint64(len(rest)-size) < n {
			return nil, nil, nil, errRecord
		}
		*name, rest = rest[size:size+int(n)], rest[size+int(n):]
	}
	return crawl, key, rest, nil
}

func appendNumbers(dst []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		dst = binary.AppendVarint(dst, n)
	}
	return dst
}

// readNumbers reads numbers, and returns what follows them.
func readNumbers(value []byte, numbers ...*int64) ([]byte, error) {
	for _, n := range numbers {
		var size int
		if *n, size = binary.Varint(value); size <= 0 {
			return nil, errRecord
		}
		value = value[size:]
	}
	return value, nil
}

func appendLimits(dst []byte, l schedule.Limits) []byte {
	return appendNumbers(dst, l.Delay, l.Blocked, l.Last, int64(l.Most))
}

func readLimits(value []byte) (l schedule.Limits, err error) {
	var most int64
	_, err = readNumbers(value, &l.Delay, &l.Blocked, &l.Last, &most)
	l.Most = uint32(most)
	return l, err
}
