package frontier

import (
	"log/slog"
	"testing"
)

// testLog writes to the test's log.
func testLog(s *service) *slog.Logger { return slog.New(slog.NewTextHandler(s.Output(), nil)) }

var _ = testing.Short
