// SPDX-License-Identifier: BSD-3-Clause
// Multicast of datagrams: groups and the queue pairs that are attached to them (IB specification, volume 1, 10.5; annex
// A17.4.6). A group is an IP address: IPv4's is ::ffff:a.b.c.d, in GIDs as on the rest of the NIC.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernel/kernel.h"
#include "runtime/roce/address.h"

namespace rocebox::nic_model {

class Core;

/// The queue pair number that datagrams to groups are sent to.
inline constexpr std::uint32_t kMulticastQpn = 0xFFFFFF;

class MulticastGroups {
 public:
  /// 0, also where it is attached already; EINVAL: no group's address; ENOMEM: kMulticastGroupsMax groups, or
  /// kMulticastQpsMax queue pairs of one.
  int attach(const roce::IpAddress& group, std::uint32_t qpn);
  /// 0, or EINVAL: it is not attached.
  int detach(const roce::IpAddress& group, std::uint32_t qpn);
  void detach_from_all(std::uint32_t qpn);
  /// The queue pairs of a group, in the order in which they were attached.
  std::span<const std::uint32_t> members(const roce::IpAddress& group) const;
  std::size_t groups() const { return groups_.size(); }
  /// Of group number `i`, in the order of addresses.
  const roce::IpAddress& address(std::size_t i) const { return groups_[i].address; }
  /// Grows whenever a group comes or goes.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Group {
    roce::IpAddress address;
    std::vector<std::uint32_t> qpns;
  };
  std::vector<Group>::const_iterator find(const roce::IpAddress& address) const;

  std::vector<Group> groups_;  // by address
  std::uint64_t changes_ = 0;
};

/// Gives a copy of a datagram to each queue pair of its group. What its end is counted as: delivered when one took it.
Counter& deliver_to_group(Core& core, Context& context, Packet packet);

}  // namespace rocebox::nic_model
