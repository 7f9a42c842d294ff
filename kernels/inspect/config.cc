// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/inspect/config.h"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

#include "runtime/roce/address.h"

namespace rocebox::inspect {
namespace {

constexpr std::string_view kMtuWords[] = {"auto", "256", "512", "1024", "2048", "4096"};
constexpr std::size_t kPairsMax = 4096;

}  // namespace

namespace {

// Each direction of a connection belongs to one pair, and its ends speak one IP.
void check_pairs(Fields& fields, const std::vector<StaticPair>& pairs) {
  std::set<std::tuple<roce::IpAddress, roce::IpAddress, std::int64_t>> directions;
  for (const StaticPair& row : pairs) {
    if (!row.a || !row.b) continue;  // refused where they stand
    const std::string what = roce::address_text(*row.a) + " QP " + std::to_string(row.a_qpn) + " and " +
                             roce::address_text(*row.b) + " QP " + std::to_string(row.b_qpn) + ": ";
    if (roce::is_ipv4(*row.a) != roce::is_ipv4(*row.b))
      return fields.refuse("pairs", "has " + what + "one end has IPv4, the other IPv6");
    const bool fresh = directions.insert({*row.a, *row.b, row.b_qpn}).second;
    if (!directions.insert({*row.b, *row.a, row.a_qpn}).second || !fresh)
      return fields.refuse("pairs", "has " + what + "one of these QPs is in another pair between these addresses");
  }
}

}  // namespace

void StaticPair::fields(Fields& fields) {
  fields.address("a", a, Presence::kRequired, "IP address of one end");
  fields.integer("a_qpn", a_qpn, {2, 0xFFFFFF}, "its queue pair number");
  fields.address("b", b, Presence::kRequired, "IP address of the other end");
  fields.integer("b_qpn", b_qpn, {2, 0xFFFFFF}, "its queue pair number");
}

void Config::fields(Fields& fields) {
  fields.integer("flows", flows, {1, 1 << 20}, "flows remembered; packets of more pass and are counted in flows_full");
  fields.integer("window", window, {64, 65536}, "PSNs remembered for each flow and direction, a power of two");
  if (!std::has_single_bit(static_cast<std::uint64_t>(window))) fields.refuse("window", "not a power of two");
  constexpr std::int64_t kPsnsMax = std::int64_t{1} << 26;  // three spaces of 16 bytes a PSN: 3 GiB at most
  if (flows * window > kPsnsMax)
    fields.refuse("flows", "needs too much memory: `flows` times `window` may be 67108864");
  fields.choice("mtu", mtu, kMtuWords, "path MTU that says how many PSNs a READ takes; auto learns it");
  fields.duration("retransmit_after", retransmit_after, {0, 60 * kSecond},
                  "a repeated or late PSN this old was sent again, when nothing better tells");
  fields.integer("events", events, {0, 1024}, "losses, retransmissions, NAKs listed for each flow: the first ones");
  constexpr std::int64_t kEventsMax = std::int64_t{1} << 26;  // of 24 bytes: 1.5 GiB
  if (flows * events > kEventsMax)
    fields.refuse("events", "needs too much memory: `flows` times `events` may be 67108864");
  fields.duration(
      "go_back_n_rtt", go_back_n_rtt, {0, 60 * kSecond},
      "round trip from here to the sender, for `go_back_n_packets`: what a sender that goes back would send "
      "again; 0: not counted");
  fields.boolean("check_icrc", check_icrc, "verify each packet's ICRC; a wrong one is counted and nothing else");
  fields.list("pairs", pairs, kPairsMax, "RC connections that are known");
  check_pairs(fields, pairs);
}

}  // namespace rocebox::inspect
