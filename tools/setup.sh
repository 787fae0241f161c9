#!/usr/bin/env bash
# Set up .venv with recbulc (editable) and all it needs. Missing system packages are installed with apt where root or
# sudo allows it; otherwise the exact command is named.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}

packages=()
if ! command -v "$PYTHON" >/dev/null; then
    packages+=(python3 python3-venv python3-dev)
else
    if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
        echo "setup: recbulc needs Python 3.10 or newer, $PYTHON is $("$PYTHON" -V); set PYTHON=... to a newer one" >&2
        exit 3
    fi
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
    header=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
    [ -e "$header" ] || packages+=(python3-dev)
fi
command -v cc >/dev/null || packages+=(gcc libc6-dev)
command -v c++ >/dev/null || packages+=(g++)

if [ ${#packages[@]} -gt 0 ]; then
    command="apt-get update && apt-get install -y ${packages[*]}"
    if ! command -v apt-get >/dev/null; then
        echo "setup: these are missing: ${packages[*]} (Debian's names); install them and try again" >&2
        exit 3
    elif [ "$(id -u)" -eq 0 ]; then
        bash -c "$command"
    elif sudo -n true 2>/dev/null; then
        sudo bash -c "$command"
    else
        echo "setup: run this as root, then try again:  $command" >&2
        exit 3
    fi
fi

[ -x .venv/bin/python ] || "$PYTHON" -m venv .venv
.venv/bin/python -m pip install --quiet --quiet --disable-pip-version-check --editable '.[dev]'

# `recbulc cc` wants a clang of version 16 or newer (recorders/compiler.py); where there is none, the one in the ziglang
# wheel does, which needs no root
if ! .venv/bin/python -c 'from recbulc.recorders.compiler import find_compiler; find_compiler()' 2>/dev/null; then
    .venv/bin/python -m pip install --quiet --quiet --disable-pip-version-check 'ziglang==0.13.*'
fi
touch .venv/ready
