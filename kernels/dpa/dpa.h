// SPDX-License-Identifier: BSD-3-Clause
// dpa: runs a device program of a DPA on what packets that pass would complete at their receivers; changes nothing.
// kernels/dpa/README.md. Ports: two-sided. Example: `path: host <-> dpa <-> wire`.
#pragma once
#include "runtime/kernel/kernel_options.h"

namespace rocebox {
Component dpa_component();
}  // namespace rocebox
