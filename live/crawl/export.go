package crawl

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// ExportPath is where a crawler that runs gives what it found.
const ExportPath = "/export.csv"

// stalled is for how long a client may take nothing of an export. What is read meanwhile stays on the disk
// as it was.
const stalled = time.Minute

// onward writes to a client for as long as that takes what is written.
type onward struct{ http.ResponseWriter }

func (w onward) Write(p []byte) (int, error) {
	http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(stalled)) // if it is a connection
	return w.ResponseWriter.Write(p)
}

// serveExport writes what was found.
func (c *Crawler) serveExport(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="items.csv"`)
	if _, err := c.WriteRecording(onward{w}); err != nil {
		c.opt.Log.Error("an export was broken off", "error", err)
		panic(http.ErrAbortHandler) // so that it is not taken for whole
	}
}

// ExportFrom writes what a crawler has found that runs and shows its page at an address.
func ExportFrom(ctx context.Context, w io.Writer, address string) (rows int, err error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+ExportPath, nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/csv") {
		return 0, fmt.Errorf("%s answers %s, and not what a crawler has found", address, res.Status)
	}
	table := csv.NewReader(io.TeeReader(res.Body, w))
	table.ReuseRecord = true
	for rows = -1; ; rows++ { // but for the header
		_, err := table.Read()
		switch {
		case err == io.EOF && rows >= 0:
			return rows, nil
		case err != nil:
			return 0, fmt.Errorf("%s broke off: %w", address, err)
		}
	}
}
