#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds release where needed, measures, prints one table of claims, bounds and values.
# usage: bench/run.sh [--quick] [--build FOLDER]     (--quick: a capture of 100 MB instead of 1 GB)
# Exit status: 0 all claims hold, 1 one fails, 2 it could not be measured.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
build=$root/build/release
megabytes=1000
while (($#)); do
  case $1 in
    --quick) megabytes=100 ;;
    --build) build=${2:?--build needs a folder}; shift ;;
    *) echo "usage: bench/run.sh [--quick] [--build FOLDER]" >&2; exit 2 ;;
  esac
  shift
done

[[ -f $build/build.ninja ]] || (cd "$root" && cmake --preset release -B "$build" > /dev/null) || exit 2
build=$(realpath "$build")
targets=(rocebox bare_copy make_capture)
micro=()
known=$(cmake --build "$build" --target help 2> /dev/null) || exit 2
for name in parse icrc hash pipeline kernel stage lowar; do
  # Without Google Benchmark CMake leaves these out, and says so.
  if grep -q "^${name}_bench:" <<< "$known"; then micro+=("$name") targets+=("${name}_bench"); fi
done
((${#micro[@]})) && targets+=(new_flows_bench event_queue_bench nic_bench sdr_messages_bench sdr_codec_bench dpa_bench allgather_bench multicast_bench scr_bench)
results=$(mktemp -d "${TMPDIR:-/tmp}/rocebox-bench.XXXXXX")
trap 'rm -rf "$results"' EXIT
trap 'exit 2' INT TERM
cmake --build "$build" --target "${targets[@]}" &> "$results/log" || { tail -40 "$results/log" >&2; exit 2; }
cpu=$(python3 -c 'import os; print(max(os.sched_getaffinity(0)))')
# Many short repetitions in several rounds, of which the best counts: other work on the machine only ever adds time.
for round in 1 2 3 4 5 6 7 8; do
  for name in "${micro[@]}"; do
    taskset -c "$cpu" "$build/bench/${name}_bench" --benchmark_repetitions=12 --benchmark_min_time=0.002 \
      --benchmark_out="$results/$name.$round.json" --benchmark_out_format=json &> "$results/log" ||
      { cat "$results/log" >&2; exit 2; }
  done
done
if ((${#micro[@]})); then  # has rounds of its own
  for name in new_flows event_queue; do
    taskset -c "$cpu" "$build/bench/${name}_bench" --benchmark_out="$results/$name.json" --benchmark_out_format=json \
      &> "$results/log" || { cat "$results/log" >&2; exit 2; }
  done
  taskset -c "$cpu" "$build/bench/nic_bench" --benchmark_repetitions=3 --benchmark_out="$results/nic.json" \
    --benchmark_out_format=json &> "$results/log" || { cat "$results/log" >&2; exit 2; }
  for name in sdr_messages sdr_codec dpa allgather multicast scr; do
    taskset -c "$cpu" "$build/bench/${name}_bench" --benchmark_filter=-mds_gfni --benchmark_repetitions=8 --benchmark_min_time=0.02 \
      --benchmark_out="$results/$name.json" --benchmark_out_format=json &> "$results/log" ||
      { cat "$results/log" >&2; exit 2; }
  done
  if ! grep -q '"instructions"' "$results/scr.json" && command -v valgrind > /dev/null; then  # no counter of the machine's
    python3 "$root/bench/micro/instructions.py" "$build/bench/scr_bench" swift_through_the_interface swift_called_directly \
      pcc_through_the_interface pcc_called_directly=1000 pcc_events_alone > "$results/instructions_of_calls.json" ||
      rm -f "$results/instructions_of_calls.json"
  fi
fi
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), CPU $cpu, load $(cut -d' ' -f1 /proc/loadavg)"
status=0
"$root/bench/peers/replay_speed.sh" "$build" "$megabytes" "$results/replay.json" || status=$?
((status < 2)) || exit 2
python3 "$root/bench/table.py" "$results" || status=$?
((status < 2)) || exit 2
if [[ $EUID == 0 ]]; then
  lost=0
  python3 "$root/bench/peers/new_flows.py" "$build" || lost=$?
  ((lost < 2)) || exit 2
  exit $((status > lost ? status : lost))
fi
echo "new QPs through configs/live/bump.yaml: not measured, which needs root for a network namespace"
exit "$status"
