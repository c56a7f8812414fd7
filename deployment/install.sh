#!/bin/sh
# Install one service from built wheels into the environment of PYTHON; needs neither uv nor a toolchain.
# usage: install.sh PYTHON WHEELS
set -eu
python=$1
wheels=$2
"$python" -m pip install --quiet --no-cache-dir --require-hashes --only-binary :all: \
    -r "$wheels/requirements.txt" -r "$wheels/requirements-cli.txt"
"$python" -m pip install --quiet --no-cache-dir --no-deps --no-index "$wheels"/ragaudit_*.whl
"$python" -m pip check
