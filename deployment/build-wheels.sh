#!/bin/sh
# Build what one party installs, or what everybody does: hash-locked requirements and our own wheels.
# usage: build-wheels.sh PARTY OUT     PARTY is prover, verifier, client or all; run from the repository root; needs uv and cargo.
set -eu
service=$1
out=$2
members="encoding circuits circuits/rust ledger embedders $service cli"
package="ragaudit-$service"
case $service in
    # With the bundled embedder: settings that name no other one work as they are.
    prover) extras="--extra postgres --extra otel --extra wordllama" members="privacy serving $members" ;;
    verifier) extras="--extra fast --extra embedder --extra otel" members="privacy serving $members" ;;
    client) extras="--extra embedder" ;;
    all) extras="" package=ragaudit-lab
        members="encoding circuits circuits/rust ledger privacy embedders serving prover verifier client cli lab" ;;
    *) echo "unknown party '$service': expected prover, verifier, client or all" >&2; exit 2 ;;
esac
export UV_PYTHON_DOWNLOADS=never
mkdir -p "$out"
# Frozen: whether the lock is up to date is for the tests to say; here it is what is installed.
# shellcheck disable=SC2086  # the extras are separate words on purpose
uv export --quiet --frozen --no-dev --no-emit-workspace --no-header --no-annotate \
    --package "$package" --package ragaudit-cli $extras --output-file "$out/requirements.txt"
for member in $members; do
    uv build --quiet --wheel --build-constraints deployment/build-requirements.txt --require-hashes \
        --out-dir "$out" "$member"
done
