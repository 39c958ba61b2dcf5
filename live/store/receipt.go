package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// receipt says how far what was acknowledged had come. Each batch has the number of
// commits up to it. The same number is written to a file of its own when the batch is on
// disk and before anybody gets an answer. Where that file is ahead of what a start finds in the
// store, a file of the store was cut, damaged or replaced.
type receipt struct {
	Commits int64
	Crawls  int
	URLs    int
}

// receiptName is the file of the last receipt. It is not synced: after a power cut it may
// be older than the store, and says nothing then.
const receiptName = "ACKNOWLEDGED"

func (r receipt) String() string {
	return fmt.Sprintf("%d commits, with %d URLs in %d crawls", r.Commits, r.URLs, r.Crawls)
}

// line is the contents of the file, of one length for all numbers.
func (r receipt) line() []byte {
	line := fmt.Appendf(nil, "%020d commits %020d URLs %020d crawls ", r.Commits, r.URLs, r.Crawls)
	return fmt.Appendf(line, "%08x\n", crc32.ChecksumIEEE(line))
}

// readReceipt reads a receipt, zero where there is none or only part of one.
func readReceipt(f vfs.File) (r receipt) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<10))
	if err != nil {
		return receipt{}
	}
	if _, err := fmt.Sscanf(string(text), "%d commits %d URLs %d crawls", &r.Commits, &r.URLs, &r.Crawls); err != nil {
		return receipt{}
	}
	if string(text) != string(r.line()) {
		return receipt{}
	}
	return r
}

// openReceipt finds out whether all that was acknowledged is there.
func (s *Store) openReceipt() (err error) {
	s.receipts, err = s.opt.FS.OpenReadWrite(filepath.Join(s.dir, receiptName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	found, acknowledged := s.receipt(), readReceipt(s.receipts)
	if acknowledged.Commits > found.Commits {
		s.lost = fmt.Errorf("store %s: acknowledged were %v; found are %v. What the last %d commits changed is lost: "+
			"a file of the directory was cut, damaged or replaced. What can be done: "+
			"end this program and restore the directory from a copy, or put again what is missing",
			s.dir, acknowledged, found, acknowledged.Commits-found.Commits)
		s.opt.Log.Error(s.lost.Error())
	}
	return nil
}

// receipt returns that of all commits so far.
func (s *Store) receipt() receipt {
	crawls, urls := s.sched.Size()
	return receipt{Commits: s.commits, Crawls: crawls, URLs: urls}
}

// Lost says what was acknowledged before the start and was not found, or is nil.
func (s *Store) Lost() error { return s.lost }

// ErrInUse is returned by [Open] while another program has the store open.
var ErrInUse = errors.New("it is in use by a program that runs")

// ErrOther is returned by [Open] where the store is that of another program.
var ErrOther = errors.New("it is of another program")

// explain says of an error of Open what can be done.
func explain(dir string, err error) error {
	switch {
	case errors.Is(err, ErrNewer), errors.Is(err, ErrOther):
		return fmt.Errorf("store %s: %w", dir, err)
	case errors.Is(err, syscall.EAGAIN) || err.Error() == "lock held by current process":
		return fmt.Errorf("store %s: %w", dir, ErrInUse)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("store %s: %w: the disk is full; make room, then start again", dir, err)
	case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("store %s: %w", dir, err)
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("store %s: %s. A file of the directory is missing or damaged. What can be done: "+
		"restore the directory from a copy; or move its last file *.log away, if that is the damaged one, "+
		"which loses what it holds, and the next start says how much; or begin in another directory", dir, text)
}
