#!/bin/sh
# Runs a command with the kernels that were compiled with the image: Numba wants to write to its cache, the image is read-only.
set -eu
mkdir -p "$TMPDIR"
[ -d "$NUMBA_CACHE_DIR" ] || { cp -R /opt/numba "$NUMBA_CACHE_DIR.new" && mv "$NUMBA_CACHE_DIR.new" "$NUMBA_CACHE_DIR"; }
exec "$@"
