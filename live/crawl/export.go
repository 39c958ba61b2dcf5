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

// serveExport writes what was found.
func (c *Crawler) serveExport(w http.ResponseWriter, _ *http.Request) {
	http.NewResponseController(w).SetWriteDeadline(time.Time{}) // if it is a connection
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="items.csv"`)
	if _, err := c.WriteRecording(w); err != nil {
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
