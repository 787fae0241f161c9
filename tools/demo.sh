#!/usr/bin/env bash
# What `make demo` shows: a bug that hardly ever fails in 200 plain runs, reproduced, replayed, and its fix checked.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?where results go}
bug=tests/programs/bugs/lost_update.c
recbulc=.venv/bin/recbulc
runs=200
replays=100

rm -rf "$out" && mkdir -p "$out"
step() { printf '\n== %s\n' "$*"; }
stop() { printf '\ndemo failed: %s\n' "$*" >&2; exit 1; }

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
$recbulc reproduce --seed 1 --budget 75s --times $replays --out "$out/bug" "$bug" || stop "the bug was not reproduced"

step "does the same interleaving still fail with the fix?"
$recbulc cc -DFIXED -g -O1 -pthread "$bug" -o "$out/fixed"
code=0
$recbulc replay "$out/bug/schedule.json" --times 5 -- "$out/fixed" || code=$?
case $code in
0) stop "the fixed program still fails" ;;
1) ;; # passed, or the schedule cannot be followed any more
*) stop "the schedule could not be tried on the fixed program" ;;
esac

echo
echo "demo ok: failed $failures/$runs plain runs, $replays/$replays replays of the schedule, none with the fix;" \
    "trace, schedule and pictures are in $out/"
