#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two NICs on this machine, live, beside dpdk-testpmd. usage: bench/peers/nic_live.sh [BUILD_FOLDER [SECONDS]]      needs root
# Exit status: 0 the bound holds, 1 it does not, 2 it could not be measured.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
build=$(realpath "${1:-$root/build/release}")
log=$(mktemp "${TMPDIR:-/tmp}/rocebox-nic.XXXXXX")
trap 'rm -f "$log"' EXIT
cmake --build "$build" --target rocebox &> "$log" || { tail -40 "$log" >&2; exit 2; }
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), load $(cut -d' ' -f1 /proc/loadavg)"
status=0
python3 "$root/bench/peers/nic_live.py" "$build" "${@:2}" || status=$?
exit "$status"
