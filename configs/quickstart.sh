#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# From a fresh clone to the main job: installs what is missing, builds, and shows a real capture that crosses a lossy long link
# without and with LoWAR gateways, and counts it again. Takes options of `rocebox replay`, such as --seed 7.
set -euo pipefail
cd "$(dirname "$0")/.."
for word in "$@"; do
  case $word in -h | --help) exec python3 -B configs/quickstart.py --help ;; esac
done
. configs/setup.sh
need "${build_packages[@]}" python3
echo "building rocebox (some minutes on two cores)"
cmake --preset release >/dev/null
cmake --build --preset release --target rocebox | { grep -v '^\[\|^ninja: no work' || true; }
python3 -B configs/quickstart.py build/release/rocebox "$@"
echo
echo "The same counted again from what both runs wrote, by a parser of its own, with 12 seeds:"
exec ctest --test-dir build/release -R '^replay_quickstart$' --no-label-summary --output-on-failure
