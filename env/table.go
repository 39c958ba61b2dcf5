package env

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxLine is the longest line that is accepted, in bytes.
const maxLine = 1 << 16

// table reads three columns of a CSV file, plain or compressed, line by line.
type table struct {
	path   string
	line   int
	lines  *bufio.Reader
	text   bytes.Reader // of the present line
	fields *csv.Reader  // of the text
	names  [3]string    // of the columns of the source, the time and the utility
	column [3]int       // their places; −1 where there is none
	width  int
}

// openTable reads the header.
func openTable(path string, r io.Reader, names [3]string) (*table, error) {
	t := &table{path: path, names: names}
	t.fields = csv.NewReader(&t.text)
	t.fields.FieldsPerRecord, t.fields.ReuseRecord = -1, true
	t.lines = bufio.NewReaderSize(r, maxLine)
	if magic, err := t.lines.Peek(2); err == nil && string(magic) == "\x1f\x8b" {
		zip, err := gzip.NewReader(t.lines)
		if err != nil {
			return nil, t.fail("cannot read gzip header: %v", readable(err))
		}
		t.lines = bufio.NewReaderSize(zip, maxLine)
	}
	if mark, err := t.lines.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = t.lines.Discard(3) // what was peeked at is there
	}
	header, err := t.next()
	if err == io.EOF {
		return nil, t.fail("the file is empty; needed is a header with the columns %s and %s", names[0], names[1])
	}
	if err != nil {
		return nil, err
	}
	t.width = len(header)
	for k, name := range names {
		t.column[k] = slices.Index(header, name)
		if t.column[k] < 0 && k < 2 { // without a utility it is 1
			return nil, t.fail("column %q is missing in the header %.120q; needed are %s and %s, separated by commas, without blanks", name, strings.Join(header, ","), names[0], names[1])
		}
		if t.column[k] >= 0 && slices.Contains(header[t.column[k]+1:], name) {
			return nil, t.fail("column %q is there twice; it is allowed once", name)
		}
	}
	return t, nil
}

// fail returns an error about the present line.
func (t *table) fail(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", t.path, t.line, fmt.Sprintf(format, args...))
}

// readable says what a decompressor's error means.
func readable(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return errors.New("the compressed data end early; the file is truncated")
	}
	return err
}

// next returns the fields of the next line that is not blank, valid until the
// line after, or io.EOF. Fields in quotes hold no line breaks.
func (t *table) next() ([]string, error) {
	for {
		line, err := t.lines.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			t.line = max(t.line, 1)
			return nil, io.EOF
		}
		t.line++
		switch {
		case err == bufio.ErrBufferFull:
			return nil, t.fail("line is longer than %d bytes", maxLine)
		case err != nil && err != io.EOF:
			return nil, t.fail("cannot read: %v", readable(err))
		}
		t.text.Reset(line)
		fields, err := t.fields.Read()
		var bad *csv.ParseError
		switch {
		case errors.As(err, &bad):
			return nil, t.fail("%v", bad.Err)
		case err == nil:
			return fields, nil
		}
	}
}

// maxTime bounds Unix times, to the years -1200 to 5100. What lies beyond is
// most likely milliseconds.
const maxTime = 1e11

// publication returns the next row, or io.EOF. The name is valid until the row
// after.
func (t *table) publication() (source string, at int64, utility float64, err error) {
	field, err := t.next()
	if err != nil {
		return "", 0, 0, err
	}
	if len(field) != t.width {
		return "", 0, 0, t.fail("there are %d fields; the header has %d", len(field), t.width)
	}
	if source = field[t.column[0]]; source == "" {
		return "", 0, 0, t.fail("source is empty; needed is a name")
	}
	text := strings.TrimSpace(field[t.column[1]])
	if at, err = strconv.ParseInt(text, 10, 64); err != nil || at > maxTime || at < -maxTime {
		return "", 0, 0, t.fail("%s is %.40q; allowed is a whole number of seconds, at most 1e11 (milliseconds have to be divided by 1000)", t.names[1], text)
	}
	if t.column[2] < 0 {
		return source, at, 1, nil
	}
	text = strings.TrimSpace(field[t.column[2]])
	if utility, err = strconv.ParseFloat(text, 64); err != nil || !(utility >= 0) || math.IsInf(utility, 0) {
		return "", 0, 0, t.fail("utility is %q; allowed is a finite number, 0 or more", text)
	}
	return source, at, utility, nil
}

// pipeWait is how long the first byte of a pipe that nobody has opened for
// writing is waited for.
var pipeWait = 5 * time.Second

// input is a file that is read to its end, or until the context is done.
type input struct {
	*os.File
	ctx  context.Context
	stop func() bool
	wait time.Time // until when an end without a byte is no end; zero for none
}

// openInput opens a file or a pipe. A pipe is opened without waiting for its
// writer, who may come within pipeWait.
func openInput(ctx context.Context, path string) (*input, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	in := &input{ctx: ctx, stop: func() bool { return true }}
	mode := os.O_RDONLY
	if info.Mode()&os.ModeNamedPipe != 0 {
		mode |= syscall.O_NONBLOCK
		in.wait = time.Now().Add(pipeWait)
	}
	if in.File, err = os.OpenFile(path, mode, 0); err != nil {
		return nil, err
	}
	if !in.wait.IsZero() {
		in.stop = context.AfterFunc(ctx, func() { _ = in.SetReadDeadline(time.Now()) })
	}
	return in, nil
}

// Read implements io.Reader.
func (in *input) Read(p []byte) (int, error) {
	for {
		n, err := in.File.Read(p)
		if n > 0 {
			in.wait = time.Time{}
		}
		if n > 0 || err != io.EOF || in.wait.IsZero() {
			return n, err
		}
		if time.Now().After(in.wait) {
			return 0, fmt.Errorf("nobody wrote into the pipe for %v", pipeWait)
		}
		select {
		case <-in.ctx.Done():
			return 0, in.ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Close closes the file.
func (in *input) Close() error {
	in.stop()
	return in.File.Close()
}
