#!/usr/bin/env bash
# Runs the tests of Kubernetes on the labs: a real S3 server, a real Kubernetes API with the real Dask operator. Ten minutes;
# the first time ten more, for the lab is built. AUCDIST_LABS: the labs' folder. For root on Debian, as the labs are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
labs=$(realpath "${AUCDIST_LABS:-../shared/labs}")
"$labs/s3/install.sh"
eval "$("$labs/s3/up.sh" | tail -n 1)"
"$labs/kubernetes/install.sh"
"$labs/kubernetes/build.sh"
# Pods find their commands by this PATH; the node is big enough for all that one test asks for.
export PATH=$PWD/.venv/bin:$PATH NODE_CPU=32 NODE_MEMORY=64Gi
eval "$("$labs/kubernetes/up.sh" | tail -n 1)"
trap '"$labs/kubernetes/down.sh"' EXIT
"$labs/kubernetes/run.sh" pytest -q -m kubernetes tests/infra "$@"
