#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests, from a fresh clone: installs what is missing, builds, runs. See usage() or --help.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: tests/run.sh               what finds most mistakes, in about twelve minutes on two cores
       tests/run.sh --all         everything, in about an hour
       tests/run.sh PRESET...     all tests of these builds: release, asan, tsan, debug, fuzz (asan's, and fuzzing)

Without options: release's unit, replay, simulation and telemetry tests, one lab, the house's rules and formatting, some
swarm seeds. --all adds all labs, plugins, packages, every configuration for simulations that is shipped, virtual
machines with Soft-RoCE, fuzzing, a thousand swarm seeds, and all that sanitizers have: unit tests and commands under
AddressSanitizer and UndefinedBehaviorSanitizer, threads under ThreadSanitizer; its unit tests run in an order drawn from
a seed that it prints: GTEST_RANDOM_SEED=N makes it that one again.
Unit tests have sanitizers there, but for what takes longest and tells of chances or order; what asks more without them
runs so, too. Neither runs the tests of the debug build.

Builds are in build/PRESET. All that runs is one run of ctest, which ends with how many passed; exit status 0: all.
One test: (cd build/release && ctest -R '^replay_link$' --output-on-failure); one unit test:
build/release/tests/unit/unit_tests --gtest_filter='Psn.*' (of the build that has them: fuzz after --all)
TEXT
}

everything=false
presets=()
for word in "$@"; do
  case $word in
    -h | --help) usage; exit 0 ;;
    --all) everything=true ;;
    release | asan | tsan | debug | fuzz) presets+=("$word") ;;
    *) echo "run.sh: no option or preset \`$word\`; --help tells" >&2; exit 2 ;;
  esac
done
if $everything && ((${#presets[@]})); then
  echo "run.sh: --all is all presets" >&2
  exit 2
fi

. configs/setup.sh
need "${build_packages[@]}" "${test_packages[@]}"

# Builds one preset, or of it the targets that are named.
build() {
  local preset=$1 started=$SECONDS targets=()
  shift
  (($# == 0)) || targets=(--target "$@")
  echo "== $preset: build"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" "${targets[@]}" | { grep -v '^\[\|^ninja: no work' || true; }
  echo "   $((SECONDS - started)) s"
}

# More tests at once than there are cores, where live ones, which run one at a time and mostly wait, may come before others:
# half of the time of a short run of rocebox DPDK sleeps, to gauge the clock.
jobs=$(nproc)
if (renice -n -1 "$BASHPID") &>/dev/null; then jobs=$((jobs + 2)); fi
words=(--output-on-failure --no-label-summary -j "$jobs")
if ((${#presets[@]})); then
  for preset in "${presets[@]}"; do build "$preset"; done
  words+=(-E '^unit_more$')  # unit_statistics has them
  [[ " ${presets[*]} " != *" release "* ]] || build release unit_tests
elif $everything; then
  presets=(release fuzz tsan)
  for preset in "${presets[@]}"; do build "$preset"; done
  words+=(-LE '^again$')
  echo "left out: most unit tests without sanitizers (tests/run.sh release), all without optimisation (tests/run.sh debug)"
  export GTEST_SHUFFLE=1 GTEST_RANDOM_SEED=${GTEST_RANDOM_SEED:-$((RANDOM % 99999 + 1))} ROCEBOX_SWARM_SEEDS=1000
  echo "unit tests in the order of GTEST_RANDOM_SEED=$GTEST_RANDOM_SEED"
else
  presets=(release)
  build release short_run unit_tests
  words+=(-L '^quick$')
  echo "left out, and run by --all: tests with sanitizers (tests/run.sh asan has AddressSanitizer's), most labs, plugins,"
  echo "packages, statistics, configs/sim as they are shipped, scripts of figures, every capture, virtual machines with"
  echo "Soft-RoCE, fuzzing, recordings of live runs, 1000 swarm seeds."
  echo "By neither: tests without optimisation (tests/run.sh debug)"
fi

# One run of ctest over all of them, so that its last line speaks for all.
together=build/tests-of-${presets[*]}
together=${together// /-}
mkdir -p "$together"
printf 'subdirs("../%s")\n' "${presets[@]}" >"$together/CTestTestfile.cmake"
echo "== test: ${presets[*]}"
exec ctest --test-dir "$together" "${words[@]}"
