package experiments

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestKernelHasNoGoroutines holds what CI builds on when it leaves env,
// features, baselines and learner out under the race detector: a state machine
// there starts no goroutine.
func TestKernelHasNoGoroutines(t *testing.T) {
	files := 0
	for _, room := range []string{"env", "features", "baselines", "learner"} {
		err := filepath.WalkDir(filepath.Join("..", room), func(path string, _ fs.DirEntry, err error) error {
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
