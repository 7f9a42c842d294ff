// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/source.h"

namespace rocebox::themis {

Source::Source(const Config& config, Layout& layout)
    : modulo_(config.paths),
      paths_max_(config.paths_max),
      avoidance_window_(config.avoidance_window),
      reroute_timeouts_(config.reroute_timeouts),
      rerouting_(config.rerouting) {
  const std::uint64_t paths = std::uint64_t{config.slots} * config.paths_max;
  layout.part(kPartSource);
  recved_nack_psn_ =
      layout.registers<PsnCell>("recved_nack_psn", {Gress::kIngress, IngressStage::kNack}, config.slots, 1);
  layout.part(kPartOurs);
  highest_psn_ = layout.registers<PsnCell>("highest_psn", {Gress::kIngress, IngressStage::kHighest}, config.slots, 1);
  layout.part(kPartSource);
  path_adaptive_count_ = layout.registers<std::uint32_t>("path_adaptive_count", {Gress::kIngress, IngressStage::kAvoid},
                                                         paths, config.paths_max);
}

void Source::clear(unsigned pipe, std::uint32_t slot) {
  recved_nack_psn_.operate(pipe, slot, [](PsnCell& cell) { cell = {}; });
  highest_psn_.operate(pipe, slot, [](PsnCell& cell) { cell = {}; });
  for (std::uint32_t path = 0; path < paths_max_; path++)
    path_adaptive_count_.operate(pipe, cell(slot, path), [](std::uint32_t& count) { count = 0; });
}

}  // namespace rocebox::themis
