package store

import (
	"encoding/binary"
	"errors"

	"ephemera/live/schedule"
)

// Kinds of records. A URL's record and its hold have the same key but for the kind. Times are
// in ms, but those at which URLs became known, in seconds.
const (
	kindURL   = 'u' // due time, when it became known, the caller's data
	kindWait  = 'd' // of a URL that is scheduled and not held, by due time: when it became known
	kindHold  = 'h' // of a URL that is held: end of the hold, due time, when it became known
	kindSoon  = 't' // of a URL that was hastened: its due time before
	kindQueue = 'q' // schedule.Kept
	kindValue = 'v' // a value of the caller's

	kindCommits = 'c' // how many commits there were, and when the last URL became known
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

// appendWait appends the key of a URL that waits. Its due time stands first in the order of
// numbers.
func appendWait(dst []byte, crawl, key string, due int64, url string) []byte {
	dst = appendQueue(dst, kindWait, crawl, &key)
	dst = binary.BigEndian.AppendUint64(dst, uint64(due)^1<<63)
	return append(dst, url...)
}

// readWait reads what follows the names of a queue in the key of a URL that waits.
func readWait(rest []byte) (due int64, url string, err error) {
	if len(rest) < 8 {
		return 0, "", errRecord
	}
	return int64(binary.BigEndian.Uint64(rest) ^ 1<<63), string(rest[8:]), nil
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

func appendKept(dst []byte, k schedule.Kept) []byte {
	return appendNumbers(dst, k.Delay, k.Blocked, k.Last, int64(k.Most), int64(k.Waiting), k.First, int64(k.Completed))
}

func readKept(value []byte) (k schedule.Kept, err error) {
	var most, waiting, completed int64
	_, err = readNumbers(value, &k.Delay, &k.Blocked, &k.Last, &most, &waiting, &k.First, &completed)
	k.Most, k.Waiting, k.Completed = uint32(most), int(waiting), int(completed)
	return k, err
}
