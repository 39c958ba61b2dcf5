"""Builds the shared library of the Go code, and puts that code into source distributions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "./python/capi"


class GoHook(BuildHookInterface):
    """Runs the Go compiler for a wheel; collects Go sources for an sdist."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add what Go contributes to the distribution."""
        # In a source distribution the Go module lies in go/, in the repository above this folder.
        module = Path(self.root, "go")
        if not module.exists():
            module = Path(self.root).parent
        if self.target_name == "sdist":
            for path in sources(module):
                build_data["force_include"][str(module / path)] = f"go/{path}"
            return
        suffix = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
        library = Path(self.root, "src", "ephemera", "_native", "libephemera" + suffix)
        library.parent.mkdir(exist_ok=True)
        print("ephemera: building the Go code, which takes a minute or two at first", flush=True)
        go(module, "build", "-v", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", str(library), PACKAGE)
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"


def go(module: Path, *args: str) -> str:
    """Run the Go command in the module."""
    if shutil.which("go") is None:
        raise RuntimeError(
            "ephemera is built with Go 1.26 or later (go.dev) and a C compiler; there is no `go` on the PATH"
        )
    # What Go says appears as it says it; pip shows it with -v, and when it fails.
    run = subprocess.run(
        ["go", *args], cwd=module, env={**os.environ, "CGO_ENABLED": "1"}, stdout=subprocess.PIPE, text=True
    )
    if run.returncode != 0:
        raise RuntimeError(f"go {' '.join(args)} failed; what it said stands above")
    return run.stdout


def sources(module: Path) -> list[str]:
    """List the files of the module that the shared library is built from."""
    form = (
        "{{if .Module}}{{if .Module.Main}}{{$d := .Dir}}"
        "{{range .GoFiles}}{{$d}}/{{.}}\n{{end}}{{range .CgoFiles}}{{$d}}/{{.}}\n{{end}}"
        "{{range .HFiles}}{{$d}}/{{.}}\n{{end}}{{range .SFiles}}{{$d}}/{{.}}\n{{end}}"
        "{{range .IgnoredGoFiles}}{{$d}}/{{.}}\n{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}\n{{end}}{{end}}{{end}}"
    )
    files = go(module, "list", "-deps", "-f", form, PACKAGE).split("\n")
    return ["go.mod", "go.sum", *sorted({str(Path(f).relative_to(module)) for f in files if f})]
