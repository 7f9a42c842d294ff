// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/perftest_config.h"

#include <string_view>

#include "nic_model/host/workloads/programs.h"
#include "nic_model/queues/send_queue.h"
#include "runtime/kernel/splitmix64.h"

namespace rocebox::nic_model {
namespace {

constexpr std::string_view kConnections[] = {"RC", "UC"};
constexpr std::string_view kAtomicTypes[] = {"CMP_AND_SWAP", "FETCH_AND_ADD"};

}  // namespace

void PerftestConfig::fields(Fields& f, Verb verb, bool latency) {
  f.address("address", address, Presence::kOptional,
            "server to connect to by RDMA CM, of a workload with one host; left out: be one");
  f.integer("port", port, {1, 65535}, "port of RDMA CM, of a workload with one host");
  if (verb == Verb::kAtomic)
    f.choice("atomic_type", atomic_type, kAtomicTypes, "what is done to the eight bytes");
  else
    f.bytes("size", size, {1, std::uint64_t{1} << 30}, "bytes of a message");
  f.integer("iters", iters, {1, std::int64_t{1} << 40}, "messages of each queue pair");
  f.integer("mtu", mtu, {256, 4096}, "path MTU: 256, 512, 1024, 2048 or 4096 bytes");
  if (!roce::is_path_mtu(static_cast<std::uint32_t>(mtu))) f.refuse("mtu", "must be 256, 512, 1024, 2048 or 4096");
  f.integer("timeout", timeout, {0, 31},
            "4.096 us times two to this power without an ACK until packets are sent again; a `retransmission_timeout` "
            "goes first");
  recovery.fields(f);
  traffic_class_field(f, traffic_class);
  if (!is_answered(verb)) {
    f.integer("inline_size", inline_size, {0, kInlineBytesMax}, "messages of up to so many bytes are sent inline");
    f.choice("connection", connection, kConnections, "reliable or unreliable connection");
    RecoveryOptions::has_effect(f, connection == 0, "connection", "has no effect with `connection: UC`");
  }
  if (latency) return;
  if (is_answered(verb))
    f.integer("outs", outs, {1, kRdAtomicMax}, "READs or atomics of a queue pair that are under way at once");
  f.integer("qp", qp, {1, 16384}, "queue pairs");
  f.integer("tx_depth", tx_depth, {1, 16384}, "messages of a queue pair that are posted at once");
  f.integer("cq_mod", cq_mod, {1, 1024}, "one of so many messages gives a completion");
  f.boolean("bidirectional", bidirectional, "the server sends, too");
  f.duration("duration", duration, {0, 3600 * kSecond},
             "time in which messages are posted, in place of `iters`; those that were posted then still end, and "
             "averages, completion and slowdown are over all of that");
  if (duration != 0)
    f.exclude("iters", "goes with no `duration`: give the number of messages, or the time in which they are posted");
  f.rate("rate_limit", rate_limit, {0, kRateMax}, "of each queue pair, at which its messages are posted; 0: none");
  if (verb != Verb::kAtomic)
    f.bytes("size_max", size_max, {0, std::uint64_t{1} << 30},
            "messages of each queue pair have a size of its own, drawn from `size` to this; 0: all have `size`");
  if (size_max && size_max < size) f.refuse("size_max", "is less than `size`");
  if (cq_mod > tx_depth) f.refuse("cq_mod", "is more than `tx_depth`, and nothing would be completed");
  if (SendQueue::ring_blocks(static_cast<std::uint32_t>(tx_depth), 1, static_cast<std::uint32_t>(inline_size)) >
      kSendBlocksMax)
    f.refuse("inline_size", "is too large for so large a `tx_depth`: no send queue has room for so many such messages");
  if (cq_entries() > kCqEntriesMax)
    f.refuse("qp", "is too many for so large a `tx_depth`: one completion queue cannot hold all their completions");
}

ibv_wr_opcode PerftestConfig::opcode(Verb verb) const {
  constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};
  if (verb != Verb::kAtomic) return kOpcodes[static_cast<unsigned>(verb)];
  return atomic_type == 0 ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
}

std::vector<std::uint64_t> PerftestConfig::sizes(std::uint64_t seed) const {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(qp), size);
  if (size_max)
    for (std::uint64_t& one : all) one += splitmix64::next(seed) % (size_max - size + 1);
  return all;
}

}  // namespace rocebox::nic_model
