// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/transport/multicast.h"

#include <algorithm>
#include <cerrno>

#include "nic_model/core.h"
#include "runtime/roce/multicast.h"

namespace rocebox::nic_model {

std::vector<MulticastGroups::Group>::const_iterator MulticastGroups::find(const roce::IpAddress& address) const {
  return std::lower_bound(groups_.begin(), groups_.end(), address,
                          [](const Group& one, const roce::IpAddress& other) { return one.address < other; });
}

int MulticastGroups::attach(const roce::IpAddress& group, std::uint32_t qpn) {
  if (!roce::is_multicast(group)) return EINVAL;
  auto at = groups_.begin() + (find(group) - groups_.cbegin());
  if (at == groups_.end() || at->address != group) {
    if (groups_.size() >= kMulticastGroupsMax) return ENOMEM;
    at = groups_.insert(at, Group{group, {}});
    changes_++;
  }
  if (std::ranges::find(at->qpns, qpn) != at->qpns.end()) return 0;
  if (at->qpns.size() >= kMulticastQpsMax) return ENOMEM;
  at->qpns.push_back(qpn);
  return 0;
}

int MulticastGroups::detach(const roce::IpAddress& group, std::uint32_t qpn) {
  const auto at = groups_.begin() + (find(group) - groups_.cbegin());
  if (at == groups_.end() || at->address != group || std::erase(at->qpns, qpn) == 0) return EINVAL;
  if (at->qpns.empty()) {
    groups_.erase(at);
    changes_++;
  }
  return 0;
}

void MulticastGroups::detach_from_all(std::uint32_t qpn) {
  for (Group& group : groups_) std::erase(group.qpns, qpn);
  changes_ += std::erase_if(groups_, [](const Group& group) { return group.qpns.empty(); }) > 0;
}

std::span<const std::uint32_t> MulticastGroups::members(const roce::IpAddress& group) const {
  const auto at = find(group);
  if (at == groups_.end() || at->address != group) return {};
  return at->qpns;
}

Counter& deliver_to_group(Core& core, Context& context, Packet packet) {
  Counter* end = &core.count.drop_multicast;
  for (const std::uint32_t qpn : core.groups.members(roce::addresses(packet).destination)) {
    Qp& qp = *core.find(qpn);
    const bool writes = roce::opcode_info(packet.meta().opcode).service == roce::Service::kUc;
    Counter& one = !qp.can_receive()             ? core.count.drop_qp_state
                   : writes != qp.is(IBV_QPT_UC) ? core.count.drop_wrong_service
                   : writes                      ? qp.responder.on_group_write(context, packet)
                                                 : qp.responder.on_datagram(context, packet);
    if (&one == &core.count.delivered) core.count.multicast_copies.add();
    if (end != &core.count.delivered) end = &one;
  }
  return *end;
}

}  // namespace rocebox::nic_model
