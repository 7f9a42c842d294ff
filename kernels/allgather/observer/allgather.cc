// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/observer/allgather.h"

#include "kernels/allgather/observer/observer.h"

namespace rocebox {
namespace {

constexpr Example kObserverExamples[] = {
    {"default", "{}"},
    {"limits reached: few streams, a short window, one slot",
     "{streams: 2, collectives: 1, groups: 1, window: 64, events: 3, staging_slots: 1}"},
    {"short immediates, late chunks, collectives that begin anew soon",
     "{chunk_bits: 4, collective_bits: 4, block_chunks: 12, cutoff: 1us, restart_after: 20us, check_icrc: false, "
     "copy_rate: 1Gbps}"},
    {nullptr, nullptr},
};

}  // namespace

Component allgather_component() {
  return two_sided_kernel<allgather::Observer>(
      "allgather", "chunks of multicast collectives that pass: missing, double, late, out of order, staging",
      kObserverExamples);
}

}  // namespace rocebox
