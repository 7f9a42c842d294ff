#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `rocebox replay` with an empty bump beside a bare libpcap loop: the same capture, alternately, from a warm page cache.
# Below 1000 MB the start of both programs, taken from a capture of 1 MB, is left out of what is judged.
# Also the peak memory of replay for a quarter of the capture and for all of it.
# usage: replay_speed.sh BUILD_FOLDER [MEGABYTES] [JSON_FILE]
# Exit status: 0 within the bounds, 1 not, 2 it could not be measured.
set -euo pipefail
build=$(realpath "${1:?usage: replay_speed.sh BUILD_FOLDER [MEGABYTES] [JSON_FILE]}")
megabytes=${2:-1000}
json=${3:+$(realpath "$3")}
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d "${TMPDIR:-/tmp}/rocebox-replay.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 2' INT TERM

for program in rocebox bench/bare_copy bench/make_capture; do
  [[ -x $build/$program ]] || { echo "replay_speed: $build/$program is not built" >&2; exit 2; }
done
"$build/bench/make_capture" "$work/start.pcap" 1 || exit 2
"$build/bench/make_capture" "$work/quarter.pcap" $((megabytes / 4)) || exit 2
"$build/bench/make_capture" "$work/full.pcap" "$megabytes" || exit 2
for size in start quarter full; do
  cat > "$work/$size.yaml" <<EOF
devices:
  bump: {path: a <-> b}
ports:
  bump.a: {pcap: {in: $size.pcap}}
  bump.b: {pcap: {out: copy.pcap}}
EOF
done
status=0
python3 "$here/replay_speed.py" "$build" "$work" ${json:+"$json"} || status=$?
exit $status
