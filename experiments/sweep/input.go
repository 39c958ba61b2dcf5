package sweep

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"ephemera/env"
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
func (l *loader) read(key Key, value any) error {
	name, ok := value.(string)
	if !ok || key.File == nil || !key.File(name) || l.inputs[name] != nil {
		return nil
	}
	var data []byte
	err := fs.ErrNotExist
	if copied, ok := l.copies[name]; ok && l.flags[key.Name] == "" {
		data, err = env.ReadFile(filepath.Join(filepath.Dir(l.file), inputsDir, filepath.Base(copied)), maxInput)
	}
	if err != nil {
		data, err = env.ReadFile(name, maxInput)
	}
	if err == nil {
		l.inputs[name] = &Input{data, sha256.Sum256(data)}
	}
	return err
}

// copied returns the files beside a config.toml that a sweep wrote, by the names
// that the configuration has for them.
func copied(config string) (map[string]string, error) {
	if filepath.Base(config) != configFile {
		return nil, nil
	}
	m, err := ReadMeta(filepath.Dir(config))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.Inputs, nil
}
