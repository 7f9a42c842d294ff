// SPDX-License-Identifier: BSD-3-Clause
// Ring AllReduce between datacenters: 2N - 2 stages that wait for each other (5.3).
#pragma once
#include <algorithm>
#include <vector>

#include "kernels/sdr/model/random.h"

namespace rocebox::sdr {

/// One draw of the time of a ring AllReduce of N nodes. `write` draws the time of one Write of a stage. A node begins a
/// stage when its own Write of the stage before is done and its neighbor's has come.
template <class Write>
double sample_ring(unsigned nodes, std::vector<double>& done, Write&& write) {
  done.assign(nodes, 0);
  for (unsigned stage = 0; stage < 2 * nodes - 2; stage++) {
    double from = done[nodes - 1];
    for (unsigned node = 0; node < nodes; node++) {
      const double own = done[node];
      done[node] = std::max(own, from) + write();
      from = own;
    }
  }
  return *std::max_element(done.begin(), done.end());
}

}  // namespace rocebox::sdr
