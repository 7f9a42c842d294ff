// SPDX-License-Identifier: BSD-3-Clause
// lowar: forward error correction for RoCEv2 over lossy long-haul links (LoWAR). README.md is its manual.
#pragma once
#include <cstddef>
#include <memory>

#include "kernels/lowar/config.h"
#include "runtime/kernel/kernel_options.h"

namespace rocebox {

Component lowar_component();

namespace lowar {
/// A gateway that is configured in code rather than in YAML.
std::unique_ptr<Kernel> make(const Config& config, Stats& stats);

/// Bytes of memory that one direction of a gateway takes when all of it is in use; the encoder's and the decoder's.
struct StateBytes {
  std::size_t encoder_streams, decoder_streams, units, reordering;
};
StateBytes state_bytes(const Config& config);
}  // namespace lowar
}  // namespace rocebox
