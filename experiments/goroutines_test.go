package experiments

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestKernelHasNoGoroutines holds what CI builds on when it leaves packages out under the race detector:
// nothing in env, features, baselines and learner starts a goroutine, nor in commands but those that serve,
// the terminal's line of progress, and what train shows there.
func TestKernelHasNoGoroutines(t *testing.T) {
	raced := []string{"../cmd/crawl", "../cmd/frontier", "../cmd/internal/cli", "../cmd/internal/train"}
	files := 0
	for _, room := range []string{"env", "features", "baselines", "learner", "cmd"} {
		err := filepath.WalkDir(filepath.Join("..", room), func(path string, _ fs.DirEntry, err error) error {
			if slices.Contains(raced, filepath.ToSlash(path)) {
				return fs.SkipDir
			}
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files++
			for _, imported := range file.Imports {
				name := strings.Trim(imported.Path.Value, `"`)
				if name == "sync" || strings.HasPrefix(name, "sync/") || strings.HasSuffix(name, "/errgroup") {
					t.Errorf("%s imports %s", path, name)
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if _, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s starts a goroutine", path)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 20 {
		t.Errorf("only %d files were read", files)
	}
}
