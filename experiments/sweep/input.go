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
	"strings"
)

// Input is a file that a setting names, as it was when the configuration was
// loaded.
type Input struct {
	Data []byte
	Sum  [sha256.Size]byte
}

// inputsDir is the directory beside a configuration that holds the files that
// it names. A sweep puts copies there, so that its directory says all.
const inputsDir = "inputs"

// inputFile is the name of the copy in inputsDir: the file's own, shortened, and
// a number that tells files of one name in several directories apart.
func inputFile(name string) string {
	name = filepath.ToSlash(name)
	ext := path.Ext(name)
	base := url.PathEscape(strings.TrimSuffix(path.Base(name), ext))
	return fmt.Sprintf("%.60s-%08x%s", base, crc32.ChecksumIEEE([]byte(name)), ext)
}

// read reads the file that a value names, if it does: where the configuration
// names it, the copy beside that, or else the one that the name leads to from
// the working directory.
func (l *loader) read(e entry, key Key, value any) error {
	name, ok := value.(string)
	if !ok || key.File == "" || !strings.HasSuffix(name, key.File) || l.inputs[name] != nil {
		return nil
	}
	var data []byte
	err := fs.ErrNotExist
	if !e.set {
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
