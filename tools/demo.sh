#!/usr/bin/env bash
# What `make demo` shows: a bug that does not fail in 200 plain runs, reproduced, replayed, and its fix checked.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?where results go}
bug=tests/programs/bugs/lost_update.c
recbulc=.venv/bin/recbulc
runs=200

rm -rf "$out" && mkdir "$out"
step() { printf '\n== %s\n' "$*"; }

step "can this machine do it?"
$recbulc doctor

step "calibrating its clocks"
$recbulc calibrate --plot "$out/clocks.png"

step "$bug, compiled as usual, $runs runs"
cc -O1 -pthread "$bug" -o "$out/plain"
failures=0
for ((i = 0; i < runs; i++)); do
    "$out/plain" >/dev/null 2>&1 || failures=$((failures + 1))
done
echo "failed $failures/$runs plain runs"

step "recbulc reproduce $bug"
$recbulc reproduce --seed 1 --budget 2m --out "$out/bug" "$bug"

step "does the same interleaving still fail with the fix?"
$recbulc cc -DFIXED -O1 -pthread "$bug" -o "$out/fixed"
if $recbulc replay "$out/bug/schedule.json" -- "$out/fixed"; then
    echo "the fixed program still fails" >&2
    exit 1
fi

echo
echo "demo ok: failed $failures/$runs plain runs, every replay of the schedule fails, the fixed program does not;" \
    "trace, schedule and pictures are in $out/"
