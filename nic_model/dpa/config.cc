// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/config.h"

namespace rocebox::nic_model::dpa {

void DpaConfig::fields(Fields& f) {
  f.integer("cores", cores, {1, kCoresMax}, "cores of the DPA");
  f.integer("threads_per_core", threads_per_core, {1, kThreadsPerCoreMax}, "threads of each core");
  f.bytes("stack", stack, {16 << 10, 8 << 20}, "bytes of each thread's stack");
  f.bytes("heap", heap, {64 << 10, std::uint64_t{4} << 30}, "bytes of memory of each process, its queues in it");
  f.duration("watchdog", watchdog, {kMillisecond, 60 * kSecond},
             "CPU time that a thread may take without giving way; then its process is stopped");
  f.group("timing", "how long threads take, in virtual time", [this](Fields& g) { timing.fields(g); });
}

}  // namespace rocebox::nic_model::dpa
