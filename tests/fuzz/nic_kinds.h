// SPDX-License-Identifier: BSD-3-Clause
// The queue pairs of each side of nic_fuzz.cc: of which service, and whom they talk to.
#pragma once
#include <infiniband/verbs.h>

#include <iterator>
#include <vector>

#include "runtime/roce/address.h"

namespace rocebox::fuzz::nic_bed {

enum class Way : std::uint8_t {
  kAcross,  ///< to the same one of the other side
  kWithin,  ///< to one of the same NIC
  kGroup,   ///< to a multicast group, which it is attached to
  kByCm     ///< to whom RDMA CM connects it
};
struct Kind {
  ibv_qp_type type;
  bool shares;  // a receive queue
  Way way = Way::kAcross;
  unsigned peer = 0;  // kWithin
};
inline constexpr Kind kKinds[] = {
    {IBV_QPT_RC, false},
    {IBV_QPT_RC, true},
    {IBV_QPT_UC, false},
    {IBV_QPT_UD, false},
    {IBV_QPT_UD, true},
    {IBV_QPT_RC, false, Way::kWithin, 6},
    {IBV_QPT_RC, true, Way::kWithin, 5},
    {IBV_QPT_UC, false, Way::kWithin, 8},
    {IBV_QPT_UC, false, Way::kWithin, 7},
    {IBV_QPT_UC, false, Way::kGroup},
    {IBV_QPT_UC, true, Way::kGroup},
    {IBV_QPT_UD, false, Way::kGroup},
    {IBV_QPT_RC, false, Way::kByCm},
    {IBV_QPT_RC, true, Way::kByCm},
    {IBV_QPT_UD, false, Way::kByCm},
};
inline constexpr unsigned kPairs = std::size(kKinds), kPairsAcross = 5, kFirstByCm = 12;

/// Bits of the ways that are in use beside kAcross.
constexpr unsigned bit_of(Way way) { return 1u << static_cast<unsigned>(way) >> 1; }
inline std::vector<unsigned> pairs_of(unsigned ways) {
  std::vector<unsigned> pairs;
  for (unsigned i = 0; i < kPairs; i++)
    if (kKinds[i].way == Way::kAcross || (ways & bit_of(kKinds[i].way))) pairs.push_back(i);
  return pairs;
}

inline constexpr unsigned kGroups = 3;
inline roce::IpAddress group_of(unsigned number) {
  if (number == 2) return {0xFF, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
  return roce::ipv4(239, 1, 1, static_cast<std::uint8_t>(number + 1));
}

}  // namespace rocebox::fuzz::nic_bed
