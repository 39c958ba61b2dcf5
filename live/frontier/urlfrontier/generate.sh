#!/usr/bin/env bash
# Writes the Go and Python code of urlfrontier.proto. It needs grpcio-tools 1.71 of PyPI,
# which has a protoc; the plugins are tools of .ci/tools.mod.
set -euo pipefail
cd "$(dirname "$0")"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
tools=$(git rev-parse --show-toplevel)/.ci/tools.mod
for plugin in protoc-gen-go protoc-gen-go-grpc; do
	printf '#!/bin/sh\nexec go tool -modfile=%s %s\n' "$tools" "$plugin" >"$bin/$plugin"
	chmod +x "$bin/$plugin"
done
PATH="$bin:$PATH" python3 -m grpc_tools.protoc -I. --go_out=. --go_opt=paths=source_relative \
	--go-grpc_out=. --go-grpc_opt=paths=source_relative urlfrontier.proto
python=../../../python/frontier/src/ephemera_frontier
python3 -m grpc_tools.protoc -I. --python_out=$python --grpc_python_out=$python urlfrontier.proto
sed -i 's/^import urlfrontier_pb2 as/from . import urlfrontier_pb2 as/' $python/urlfrontier_pb2_grpc.py
