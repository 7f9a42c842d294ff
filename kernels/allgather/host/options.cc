// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/host/options.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "kernels/allgather/limits.h"
#include "runtime/kernel/rate_queue.h"
#include "runtime/roce/multicast.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::allgather {
namespace {

constexpr std::string_view kTransports[] = {"ud", "uc"};
constexpr std::string_view kReceivers[] = {"host", "dpa"};
constexpr std::string_view kStops[] = {"never", "start", "barrier", "sending", "recovery", "handshake"};

// Addresses of `ranks`, or why they are none.
std::string read_ranks(const std::vector<std::string>& texts, std::vector<roce::IpAddress>& ranks) {
  ranks.clear();
  for (const std::string& text : texts) {
    const std::optional<roce::IpAddress> address = roce::parse_address(text);
    if (!address || roce::is_multicast(*address)) return "has `" + text + "`, which is no host's address";
    if (std::ranges::find(ranks, *address) != ranks.end()) return "has `" + text + "` twice";
    if (!ranks.empty() && roce::is_ipv4(ranks.front()) != roce::is_ipv4(*address)) return "mixes IPv4 and IPv6";
    ranks.push_back(*address);
  }
  if (texts.size() == 1 || texts.size() > kRanksMax) return "must be 2 to " + std::to_string(kRanksMax) + " addresses";
  return "";
}

}  // namespace

void TeamOptions::fields(Fields& f) {
  f.integer("mtu", mtu, {256, 4096}, "path MTU, which is a chunk's size: 256, 512, 1024, 2048 or 4096 bytes");
  if (!roce::is_path_mtu(static_cast<std::uint32_t>(mtu))) f.refuse("mtu", "must be 256, 512, 1024, 2048 or 4096");
  f.choice("transport", transport, kTransports,
           "ud: datagrams; uc: WRITEs of unreliable connections to the group, an extension that no NIC sold has");
  f.bytes("chunk", chunk, {0, 1 << 24}, "uc: bytes of a chunk, which may be several packets; 0: one of an MTU");
  if (chunk && transport != Transport::kUc) f.refuse("chunk", "is of `transport: uc`: a datagram is one packet");
  f.choice("receive", receiver, kReceivers, "who handles what comes: the host, or workers on its NIC's DPA");
  f.duration("poll", poll, {100, kSecond}, "receive: dpa: how often the host looks whether the workers are done");
  f.integer("subgroups", subgroups, {1, kSubgroupsMax}, "multicast groups among which each block is divided");
  f.integer("communicators", communicators, {1, kCommunicatorsMax}, "how many, each with groups of its own");
  f.integer("outstanding", outstanding, {1, kOutstandingMax}, "collectives of a communicator under way at once");
  f.address(
      "group", group, Presence::kOptional,
      "address of the first communicator's first subgroup, 239.1.0.0 when left out; the others follow, subgroup by "
      "subgroup");
  if (group && !roce::is_multicast(*group)) f.refuse("group", "is no multicast address");
  f.integer("qkey", qkey, {0, 0x7FFFFFFF}, "Q_Key of the datagrams");
  f.integer("batch", batch, {1, 1024}, "datagrams posted with one doorbell, of which the last one is signalled");
  f.bytes("staging", staging, {1, std::uint64_t{1} << 30},
          "bytes of each subgroup's staging ring, in slots of an MTU and 40 bytes; 8192 slots at most");
  f.integer("receive_workers", receive_workers, {0, 4096},
            "threads among which the subgroups of all communicators are divided; 0: one each");
  f.duration("worker_time", worker_time, {0, kSecond}, "for which a receive worker is busy with one datagram");
  f.integer("collective_bits", collective_bits, {0, 16}, "bits of the immediate that tell collectives apart");
  f.integer("generation_bits", generation_bits, {0, 30},
            "bits that tell uses of those numbers apart; the rest counts chunks");
  if (!layout().is_valid()) f.refuse("generation_bits", "and `collective_bits` leave no bit for chunks");
  if (outstanding > std::int64_t{1} << collective_bits)
    f.refuse("outstanding", "is more than `collective_bits` can tell apart");
  f.rate("link_rate", link_rate, {0, kRateMax}, "B of the cutoff timer N / B + alpha; 0: the NIC's own");
  f.duration("alpha", alpha, {0, 100 * kSecond}, "alpha of the cutoff timer");
  f.duration_or("cutoff", cutoff, "formula", {0, 1000 * kSecond}, "the cutoff timer; formula: N / B + alpha");
  f.duration("timeout", timeout, {kMicrosecond, 1000 * kSecond},
             "a collective fails when for so long nothing has happened that others owe it");
  f.integer("retry_cnt", retry_cnt, {0, 7}, "times that a packet of a connection is sent again");
  f.integer("local_ack_timeout", timeout_exponent, {0, 31}, "4.096 us times two to this power until that");
  recovery.fields(f);
  std::vector<std::string> texts;
  for (const roce::IpAddress& rank : ranks) texts.push_back(roce::address_text(rank));
  f.texts(
      "ranks", texts,
      "addresses of all ranks, in order, where each is a workload of its own, in a process or namespace of its own: "
      "this one is the rank of its host's address; left out: the ranks are its hosts");
  if (const std::string why = read_ranks(texts, ranks); !why.empty()) f.refuse("ranks", why);
  f.integer("port", port, {1, 65535}, "ranks: port of RDMA CM at which they find each other");
  f.duration("join_timeout", join_timeout, {kMillisecond, 1000 * kSecond},
             "ranks: how long the others are waited for, before the first collective and behind the last");
  f.group("stop", "a rank that stops, for trying what the others then do", [this](Fields& g) {
    g.integer("rank", stop_rank, {0, kRanksMax - 1}, "which");
    g.choice("at", stop_at, kStops, "where");
  });
  if (stop_at != StopAt::kNever && !ranks.empty())
    f.refuse("stop", "is of ranks in one process: with `ranks`, stop that rank's process");
}

std::uint64_t TeamOptions::agreement(std::span<const std::uint64_t> more) const {
  std::vector<std::uint64_t> words(more.begin(), more.end());
  const auto add_address = [&](const roce::IpAddress& address) {
    std::uint64_t halves[2];
    static_assert(sizeof halves == sizeof address);
    std::memcpy(halves, address.data(), sizeof halves);
    words.insert(words.end(), std::begin(halves), std::end(halves));
  };
  for (const roce::IpAddress& rank : ranks) add_address(rank);
  add_address(group_of(0, 0));
  for (const std::int64_t number : {mtu, subgroups, communicators, collective_bits, generation_bits, qkey})
    words.push_back(static_cast<std::uint64_t>(number));
  words.push_back(chunk);
  words.push_back(static_cast<std::uint64_t>(transport));
  words.push_back(recovery.recovery ? 1 + static_cast<std::uint64_t>(*recovery.recovery) : 0);
  words.push_back(static_cast<std::uint64_t>(recovery.window));
  return XXH3_64bits(words.data(), words.size() * sizeof words[0]);
}

roce::IpAddress TeamOptions::group_of(unsigned communicator, unsigned subgroup) const {
  roce::IpAddress address = group.value_or(roce::ipv4(239, 1, 0, 0));
  unsigned add = communicator * static_cast<unsigned>(subgroups) + subgroup;
  for (std::size_t i = address.size(); add > 0 && i-- > 0; add >>= 8) {
    add += address[i];
    address[i] = static_cast<std::uint8_t>(add);
  }
  return address;
}

}  // namespace rocebox::allgather
