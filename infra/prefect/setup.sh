#!/bin/sh
# Tells a Prefect server (PREFECT_API_URL, and PREFECT_API_AUTH_STRING if it wants a password) of the pool `kubernetes` and of
# its deployments. From the root of the project.
# AUCDIST_IMAGE, AUCDIST_BUCKET (s3://bucket), AUCDIST_NAMESPACE and AUCDIST_DASK_TLS (a Secret; empty: no encryption) name
# what they run with.
set -eu
: "${AUCDIST_IMAGE:?}" "${AUCDIST_BUCKET:?}" "${AUCDIST_NAMESPACE:?}" "${AUCDIST_DASK_TLS?}"
until python -c "import os, urllib.request; urllib.request.urlopen(os.environ['PREFECT_API_URL'] + '/health', timeout=5)" 2>/dev/null
do
  echo "waiting for Prefect's server at $PREFECT_API_URL"
  sleep 5
done
prefect --no-prompt work-pool create kubernetes --type kubernetes --overwrite \
  --base-job-template infra/prefect/pool-kubernetes.json
prefect --no-prompt deploy --prefect-file infra/prefect/prefect.yaml --name '*/kubernetes'
