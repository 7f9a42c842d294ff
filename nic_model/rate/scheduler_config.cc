// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/scheduler_config.h"

#include <fmt/format.h>

#include "nic_model/limits.h"
#include "runtime/kernel/rate_queue.h"

namespace rocebox::nic_model {
namespace {

constexpr std::string_view kPolicies[] = {"round_robin", "greedy"};

}  // namespace

void SchedulerConfig::fields(Fields& f) {
  f.choice("policy", policy, kPolicies,
           "round_robin: queue pairs of a group in turn, a packet each; greedy: some packets of a message each, chosen "
           "ahead of the wire, as ConnectX prefers large messages (fitted)");
  f.bytes("turn", turn, {1, 1 << 20}, "greedy: with so many bytes a turn begins no other message");
  f.bytes("ahead", ahead, {1, 1 << 20}, "greedy: that are chosen ahead of the wire, in 128 packets at most");
  if (policy != SchedulerPolicy::kGreedy)
    for (const char* name : {"turn", "ahead"}) f.exclude(name, "is of the greedy policy");
  f.list("groups", groups, 8, "queue pairs of a priority as a group; those of all others are one of weight 1",
         [](Fields& g, GroupConfig& row) {
           g.integer("priority", row.priority, {0, 7}, "the upper three bits of the traffic class");
           g.boolean("strict", row.strict, "goes before all that are not, and before strict ones of lower priority");
           g.integer("weight", row.weight, {1, 1000}, "share of what strict groups leave");
           if (row.strict) g.exclude("weight", "is of groups that are not strict");
         });
  unsigned seen = 0;
  for (const GroupConfig& row : groups) {
    if (seen >> row.priority & 1) f.refuse("groups", fmt::format("has priority {} twice", row.priority));
    seen |= 1u << row.priority;
  }
}

void PcieConfig::fields(Fields& f) {
  f.rate("bandwidth", bandwidth, {0, kRateMax}, "at which data of packets are read; 0: all of this is off");
  f.duration("read_latency", read_latency, {0, kMillisecond}, "from asking for a packet's data to having them");
  f.integer("outstanding_reads", outstanding_reads, {1, static_cast<std::int64_t>(kStagedPackets)},
            "packets whose data are asked for at once");
  for (const char* name : {"read_latency", "outstanding_reads"})
    f.has_effect(name, bandwidth != 0, "bandwidth", "has no effect without a `bandwidth`");
}

void LoopbackConfig::fields(Fields& f) {
  f.rate("rate", rate, {0, kRateMax}, "at which packets go; 0: all that are ready at once");
  f.duration("latency", latency, {0, kMillisecond}, "from leaving to arriving");
}

void LimiterConfig::fields(Fields& f) {
  constexpr std::uint64_t kBurstMax = 1 << 30;
  f.rate("qp_rate", qp_rate, {0, kRateMax},
         "of each queue pair's requests, but datagrams'; 0: as its congestion control says");
  f.bytes("qp_burst", qp_burst, {0, kBurstMax}, "that a queue pair with a rate may send at once after a pause");
  f.rate("port_rate", port_rate, {0, kRateMax}, "of all queue pairs together; 0: the port's");
  f.bytes("port_burst", port_burst, {0, kBurstMax},
          "that may leave at once after a pause, or where a live port is late");
  f.fraction("low_rate_loss", low_rate_loss, {0, 0.99},
             "share of a rate far below 1 Gbps that its limiter loses; less in proportion as the rate comes near that");
}

}  // namespace rocebox::nic_model
