#!/bin/sh
# Tells a Prefect server (PREFECT_API_URL) of the pool `local` and its deployments, and works for it. Run folders go here.
set -eu
file=$(dirname "$0")/prefect.yaml
prefect --no-prompt work-pool create local --type process --overwrite
prefect --no-prompt deploy --prefect-file "$file" --name '*/local'
exec prefect worker start --pool local --type process
