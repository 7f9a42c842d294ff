#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The switch's speed beside dpdk-testpmd and DPDK's SWX pipeline. usage: bench/peers/switch.sh [BUILD_FOLDER [SECONDS [ROUNDS]]]
# Exit status: 0 all bounds hold, 1 one does not, 2 it could not be measured.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
build=$(realpath "${1:-$root/build/release}")
results=$(mktemp -d "${TMPDIR:-/tmp}/rocebox-switch.XXXXXX")
trap 'rm -rf "$results"' EXIT
targets=(rocebox make_switch_capture capture_source swx_forward stage_bench)
cmake --build "$build" --target "${targets[@]}" &> "$results/log" || { tail -40 "$results/log" >&2; exit 2; }
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), load $(cut -d' ' -f1 /proc/loadavg)"
status=0
python3 "$root/bench/peers/switch_speed.py" "$build" "$results/speed.json" "${@:2}" || status=$?
exit "$status"
