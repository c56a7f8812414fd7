#!/bin/sh
# Install one service from built wheels into the environment of PYTHON; needs neither uv nor a toolchain.
# usage: install.sh PYTHON WHEELS
set -eu
python=$1
wheels=$2
"$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check \
    --require-hashes --only-binary :all: -r "$wheels/requirements.txt"
"$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check \
    --no-deps --no-index "$wheels"/ragaudit_*.whl
"$python" -m pip check --disable-pip-version-check
