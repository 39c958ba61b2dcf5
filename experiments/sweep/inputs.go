package sweep

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"ephemera/env"
	"ephemera/experiments/files"
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

// file is the name of the copy.
func (in *Input) file() string { return fmt.Sprintf("%x", in.Sum[:8]) }

// read reads the file that a value names, if it does: where the config.toml of
// a sweep names it, the copy beside that, or else the one that the name leads to
// from the working directory.
func (l *loader) read(key Key, value any, g given) error {
	name, ok := value.(string)
	if !ok || key.File == nil || !key.File(name) || l.c.Inputs[name] != nil {
		return nil
	}
	var data []byte
	err := fs.ErrNotExist
	if copied, ok := l.copies[name]; ok && !g.flag() {
		data, err = env.ReadFile(copied, maxInput)
	}
	if err != nil {
		data, err = env.ReadFile(name, maxInput)
	}
	if err == nil {
		l.c.Inputs[name] = &Input{data, sha256.Sum256(data)}
	}
	return err
}

// keepInputs copies the files that the settings name.
func (c *Config) keepInputs(dir string) error {
	if len(c.Inputs) == 0 {
		return nil
	}
	d, err := files.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		in := c.Inputs[name]
		if old, err := os.ReadFile(d.Path(in.file())); err == nil && bytes.Equal(old, in.Data) {
			continue
		}
		if err := d.Put(files.File{Name: in.file(), Data: in.Data}); err != nil {
			return err
		}
	}
	return nil
}
