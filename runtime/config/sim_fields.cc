// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/sim_fields.h"

namespace rocebox::config {

void SimConfig::fields(Fields& f) {
  constexpr Nanos kLongest = 24 * 3600 * kSecond;
  f.duration("time", time, {0, kLongest}, "the run ends at this time, whatever is going on; 0: when all have finished");
  f.duration("watchdog", watchdog, {0, kLongest},
             "the run fails when no workload advances or tries again for so long, and nothing that it waits for is due "
             "later; it names who waits for what; 0: off");
  f.duration("sample", sample, {0, kLongest},
             "width of a sample of what the report has over time, such as goodput; 0: one or two hundred samples, "
             "fewer of hundreds of hosts");
  f.bytes("packet", packet, {64, 65536},
          "payload of a packet that slowdowns assume of the empty network: each hop stores one before it sends on");
}

}  // namespace rocebox::config
