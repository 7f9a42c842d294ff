#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The virtual drive: packet-hops a second, growth from 16 to 1024 hosts, memory. usage: bench/peers/sim.sh [BUILD_FOLDER [HTSIM_CHECKOUT]]
# Exit status: 0 all bounds hold, 1 one does not, 2 it could not be measured.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
build=$(realpath "${1:-$root/build/release}")
log=$(mktemp "${TMPDIR:-/tmp}/rocebox-sim.XXXXXX")
trap 'rm -f "$log"' EXIT
cmake --build "$build" --target rocebox cache_probe &> "$log" || { tail -40 "$log" >&2; exit 2; }
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), load $(cut -d' ' -f1 /proc/loadavg)"
status=0
python3 "$root/bench/peers/sim_speed.py" "$build" "${@:2}" || status=$?
exit "$status"
