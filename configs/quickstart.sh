#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# From a fresh clone to the main job on a real capture: installs what is missing, builds, replays, reports.
set -euo pipefail
cd "$(dirname "$0")/.."
. configs/setup.sh
need "${build_packages[@]}"
echo "building rocebox (about a minute)"
cmake --preset release >/dev/null
cmake --build --preset release --target rocebox | { grep -v '^\[\|^ninja: no work' || true; }
exec build/release/rocebox replay configs/quickstart.yaml "$@"
