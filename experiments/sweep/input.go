package sweep

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Input is a file that a setting names, as it was when the configuration was
// loaded.
type Input struct {
	Data []byte
	Sum  [sha256.Size]byte
}

// inputsDir is the directory beside the config.toml of a sweep that holds copies
// of the files that it names, so that the sweep's directory says all.
const inputsDir = "inputs"

// inputFile is the name of the copy in inputsDir: a number that tells files of
// one name in several directories apart, and the end of the file's own.
func inputFile(name string) string {
	name = filepath.ToSlash(name)
	base := url.PathEscape(path.Base(name))
	return fmt.Sprintf("%08x-%s", crc32.ChecksumIEEE([]byte(name)), base[max(0, len(base)-60):])
}

// read reads the file that a value names, if it does: where the config.toml of
// a sweep names it, the copy beside that, or else the one that the name leads to
// from the working directory.
func (l *loader) read(e entry, key Key, value any) error {
	name, ok := value.(string)
	if !ok || key.File == nil || !key.File(name) || l.inputs[name] != nil {
		return nil
	}
	var data []byte
	err := fs.ErrNotExist
	if l.written && !e.set {
		data, err = os.ReadFile(filepath.Join(filepath.Dir(l.file), inputsDir, inputFile(name)))
	}
	if err != nil {
		data, err = os.ReadFile(name)
	}
	if err == nil {
		l.inputs[name] = &Input{data, sha256.Sum256(data)}
	}
	return err
}

// writeInputs copies the files that the settings name to the directory of the
// sweep.
func (c *Config) writeInputs(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		to, data := filepath.Join(dir, inputsDir), c.Inputs[name].Data
		if old, err := os.ReadFile(filepath.Join(to, inputFile(name))); err == nil && bytes.Equal(old, data) {
			continue
		}
		if err := os.MkdirAll(to, 0o777); err != nil {
			return err
		}
		err := replaceVia(filepath.Join(dir, "records"), to, inputFile(name), func(w *bufio.Writer) error {
			_, err := w.Write(data)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
