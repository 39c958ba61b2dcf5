#!/usr/bin/env bash
# Writes the Go code of urlfrontier.proto. It needs protoc (Debian's
# protobuf-compiler); the plugins are tools of .ci/tools.mod.
set -euo pipefail
cd "$(dirname "$0")"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
tools=$(git rev-parse --show-toplevel)/.ci/tools.mod
for plugin in protoc-gen-go protoc-gen-go-grpc; do
	printf '#!/bin/sh\nexec go tool -modfile=%s %s\n' "$tools" "$plugin" >"$bin/$plugin"
	chmod +x "$bin/$plugin"
done
PATH="$bin:$PATH" protoc --go_out=. --go_opt=paths=source_relative \
	--go-grpc_out=. --go-grpc_opt=paths=source_relative urlfrontier.proto
