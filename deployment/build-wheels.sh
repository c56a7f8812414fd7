#!/bin/sh
# Build what one image installs: hash-locked requirements and our own wheels.
# usage: build-wheels.sh SERVICE OUT     SERVICE is prover or verifier; run from the repository root; needs uv and cargo.
set -eu
service=$1
out=$2
members="encoding circuits circuits/rust ledger privacy embedders serving $service cli"
case $service in
    prover) extras="" ;;
    verifier) extras="--extra fast --extra embedder" ;;
    *) echo "unknown service '$service': expected prover or verifier" >&2; exit 2 ;;
esac
export UV_PYTHON_DOWNLOADS=never
mkdir -p "$out"
# Frozen: whether the lock is up to date is for the tests to say; here it is what is installed.
# shellcheck disable=SC2086  # the extras are separate words on purpose
uv export --quiet --frozen --no-dev --no-emit-workspace --no-header --no-annotate \
    --package "ragaudit-$service" --package ragaudit-cli $extras --output-file "$out/requirements.txt"
for member in $members; do
    uv build --quiet --wheel --build-constraints deployment/build-requirements.txt --require-hashes \
        --out-dir "$out" "$member"
done
