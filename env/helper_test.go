package env_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"testing"

	"ephemera/env"
)

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// openReplay reads a recording and plays it with the fitted instance.
func openReplay(path string, o env.ReplayOptions) (*env.Replay, env.Instance, error) {
	rec, err := env.ReadRecording(context.Background(), path)
	if err != nil {
		return nil, env.Instance{}, err
	}
	in, err := rec.Fit(o)
	if err != nil {
		return nil, env.Instance{}, err
	}
	w, err := env.NewReplay(rec, in, o)
	return w, in, err
}
