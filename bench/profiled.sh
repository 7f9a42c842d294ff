#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds rocebox twice, as build/profiling and build/profiled: the first counts what runs while it simulates and replays
# configurations of the tree, the second is optimised by that. It gives the same reports in less time.
# usage: bench/profiled.sh [TARGET...]     (of build/profiled; without any: rocebox)
# A profile is of these sources: after a change run it again; what differs is optimised as without one.
set -euo pipefail
for word in "$@"; do
  case $word in -*) sed -n '3,7s/^# //p' "$0"; [[ $word == -h || $word == --help ]] && exit 0 || exit 2 ;; esac
done
cd "$(dirname "$0")/.."
build() {  # PRESET TARGET... [OPTION]
  cmake --preset "$1" > /dev/null
  cmake --build --preset "$1" --target "${@:2}" | { grep -v '^\[\|^ninja: no work' || true; }
}
echo "building what counts (some minutes on two cores)"
build profiling rocebox
rm -rf build/profile  # of another build's objects
rocebox=$PWD/build/profiling/rocebox
out=$(mktemp -d "${TMPDIR:-/tmp}/rocebox-profiled.XXXXXX")
trap 'rm -rf "$out"' EXIT
counted() {
  "$rocebox" "$@" -q > /dev/null 2> "$out/log" || { echo "profiled: rocebox $* failed:"; cat "$out/log"; exit 2; } >&2
}
sim() { counted sim "configs/sim/$1" "${@:2}"; }
echo "counting"
sim all_reduce.yaml --set size=64MiB
sim all_reduce.yaml --set size=64MiB --set topology.hosts.nic.ack_every=1
sim all_reduce.yaml --set topology.hosts.nic.header_only=false
sim all_reduce.yaml --set topology.hosts.nic.header_only=false --set topology.hosts.nic.icrc=false
sim lossy_pair.yaml --sweep loss=0,1% --sweep recovery=go_back_n,rnic_sr,selective --jobs 1
sim themis/collectives.yaml --set leaves=4 --set spines=4 --set hosts=4 --set scale=0.0078125
sim lowar/completion.yaml
# Nothing of SCR: the memory of its programs is fenced off from what counts.
for name in fat_tree websearch incast dcqcn link_failure sites sdr dpa allgather/allgather; do
  sim "$name.yaml"
done
for name in wan inspect themis; do
  counted replay "configs/replay/$name.yaml"
done
echo "building what is optimised by it (some minutes)"
# Ninja does not know that objects are of a profile.
build profiled "${@:-rocebox}" --clean-first
echo "build/profiled/rocebox is ready; bench/peers/sim.sh build/profiled measures it"
