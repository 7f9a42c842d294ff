// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/timing.h"

namespace rocebox::nic_model::dpa {

void TimingConfig::fields(Fields& f) {
  f.integer("clock_mhz", clock_mhz, {1, 100'000}, "clock of the cores, MHz");
  f.integer("cycles_per_cqe", cycles_per_cqe, {0, 1'000'000},
            "cycles that a thread takes for a CQE, from seeing it to what comes of it; 0: threads take no time");
  f.integer("instructions_per_cqe", instructions_per_cqe, {0, 1'000'000},
            "of these, cycles in which it issues an instruction, which no other thread of its core does then");
  f.integer("cycles_per_activation", cycles_per_activation, {0, 1'000'000}, "cycles from an event to its handler");
  f.integer("cycles_per_window_write", cycles_per_window_write, {0, 1'000'000},
            "cycles of a write-back through a window: over PCIe to the host");
  if (cycles_per_cqe && instructions_per_cqe > cycles_per_cqe)
    f.refuse("instructions_per_cqe", "are no more than the cycles");
}

}  // namespace rocebox::nic_model::dpa
