// SPDX-License-Identifier: BSD-3-Clause
// lowar: forward error correction for RoCEv2 over lossy long-haul links (LoWAR). README.md is its manual.
#pragma once
#include <memory>

#include "kernels/lowar/config.h"
#include "runtime/kernel/kernel.h"

namespace rocebox {

KernelType lowar_kernel_type();

namespace lowar {
/// A gateway for who configures it in code rather than in YAML.
std::unique_ptr<Kernel> make(const Config& config, Stats& stats);
}  // namespace lowar
}  // namespace rocebox
