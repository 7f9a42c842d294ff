// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/observer/sdr.h"

#include "kernels/sdr/observer/observer.h"

namespace rocebox {
namespace {

constexpr Example kSdrExamples[] = {
    {"the split 8 + 22 + 2, chunks of one packet, two generations, over UC or RC",
     "{message_bits: 8, offset_bits: 22, fragment_bits: 2, chunk: 1, generations: 2, service: both, bitmaps: true}"},
    {"limits reached: few connections, messages and packets",
     "{connections: 1, qps: 2, messages: 4, packets: 32, "
     "service: both, listed: 2, events: 3, check_icrc: false}"},
    {"queue pairs that are known",
     "{mtu: 1024, queue_pairs: [{destination: 10.0.0.2, first_qpn: 0x100, channels: 4, generation: 0}, {destination: "
     "10.0.0.2, first_qpn: 0x104, channels: 4, generation: 1}]}"},
    {nullptr, nullptr},
};

}  // namespace

Component sdr_component() {
  return two_sided_kernel<sdr::observer::Observer>(
      "sdr", "what comes of each message of SDR-RDMA: bitmaps, chunks, late packets, from what passes", kSdrExamples);
}

}  // namespace rocebox
