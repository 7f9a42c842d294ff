#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The live drive: speed beside dpdk-testpmd, new QPs without loss, latency beside a Linux bridge.
# usage: bench/peers/live.sh [BUILD_FOLDER]
# Exit status: 0 all bounds hold, 1 one does not, 2 it could not be measured.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
build=$(realpath "${1:-$root/build/release}")
results=$(mktemp -d "${TMPDIR:-/tmp}/rocebox-live.XXXXXX")
trap 'rm -rf "$results"' EXIT
cmake --build "$build" --target rocebox make_capture capture_source veth_latency &> "$results/log" || { tail -40 "$results/log" >&2; exit 2; }
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), load $(cut -d' ' -f1 /proc/loadavg)"
status=0
python3 "$root/bench/peers/live_speed.py" "$build" "$results/speed.json" || status=$?
((status < 2)) || exit 2
if [[ $EUID == 0 ]]; then
  lost=0
  python3 "$root/bench/peers/new_flows.py" "$build" || lost=$?
  ((lost < 2)) || exit 2
  ((lost == 0)) || status=1
  python3 "$root/bench/peers/live_latency.py" "$build" "$results/latency.json" || exit 2
else
  echo "new flows, latency: not measured, which needs root for a network namespace"
fi
exit "$status"
