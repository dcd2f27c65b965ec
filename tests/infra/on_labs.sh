#!/usr/bin/env bash
# on_labs.sh VENV: runs the tests of Kubernetes on the labs: a real S3 server, a real Kubernetes API with the real Dask operator.
# The first time ten minutes more, for the lab is built. AUCDIST_LABS: the labs' folder. For root on Debian, as the labs are.
# VENV has what the project needs; the packages of the image, which pods run, are added here.
set -euo pipefail
venv=$(realpath "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
labs=$(realpath "${AUCDIST_LABS:-../shared/labs}")
export AUCDIST_DATA=${AUCDIST_DATA:-$labs/../data}  # without it seven runs on real data are skipped
s3=${XDG_CACHE_HOME:-$HOME/.cache}/aucdist-labs/s3-kubernetes  # beside a server that somebody may be working with
pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
"${pip[@]}" --require-hashes -r infra/docker/requirements.lock
# What test_manifests.py holds the manifests against; of the operator only its schemas are wanted, and not in the pods.
"${pip[@]}" kubernetes-validate==1.37.0
"${pip[@]}" --no-deps --upgrade --target "$venv/operator" dask-kubernetes==2026.3.0
"$labs/s3/install.sh"
"$labs/kubernetes/install.sh"
"$labs/kubernetes/build.sh"

on_labs() {
  ip link set lo up
  trap '"$labs/kubernetes/down.sh" --wipe; LAB_DIR=$s3 "$labs/s3/down.sh"' EXIT
  # On a busy machine its first start may find the monitor not ready yet; it can be repeated.
  printed=$(for _ in 1 2 3; do LAB_DIR=$s3 "$labs/s3/up.sh" && break; done)
  eval "$(tail -n 1 <<< "$printed")"
  # Pods find their commands by this PATH; the node is big enough for all that one test asks for.
  export PATH=$venv/bin:$PATH NODE_CPU=32 NODE_MEMORY=64Gi
  eval "$("$labs/kubernetes/up.sh" | tail -n 1)"
  PYTHONPATH=$venv/operator "$labs/kubernetes/run.sh" \
    pytest -q -rs --durations=0 --durations-min=1 tests/infra/test_manifests.py tests/infra/test_*kubernetes*.py "$@"
}
export venv labs s3
export -f on_labs
# In a network of its own: pods share the machine's ports, which something else may have taken.
exec unshare --net -- bash -euo pipefail -c 'on_labs "$@"' on_labs "$@"
