#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# All tests, from a fresh clone: installs what is missing, builds, runs. With arguments: only these presets
# (release, asan, fuzz, debug, tsan), such as `tests/run.sh release`. With asan those tests are left out that its test preset
# names; release runs them all.
set -euo pipefail
cd "$(dirname "$0")/.."
. configs/setup.sh
need "${build_packages[@]}" "${test_packages[@]}"
presets=("$@")
[ ${#presets[@]} -gt 0 ] || presets=(fuzz asan release)
for preset in "${presets[@]}"; do
  echo "== $preset: build (a minute to four)"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" | { grep -v '^\[' || true; }
  echo "== $preset: test"
  ctest --preset "$preset"
done
