// SPDX-License-Identifier: BSD-3-Clause
// GroupReports: tells switches and routers which multicast groups queue pairs are attached to, by IGMP and MLD, where
// the option `group_reports` asks for it. Linux's stack for RoCE does not by itself.
#pragma once
#include <vector>

#include "nic_model/core.h"
#include "runtime/kernel/kernel.h"
#include "runtime/roce/membership.h"

namespace rocebox::nic_model {

class GroupReports {
 public:
  GroupReports(Core& core, Stats& stats);

  /// Behind each call of the NIC: groups that have come or gone are told of.
  void look(Context& context) {
    if (core_.config.group_reports != GroupReportsOption::kOff && core_.groups.changes() != seen_) tell(context);
  }
  /// True: it was a query, which is answered within its time, or a report of others.
  bool on_packet(Context& context, Packet packet);
  void on_timer(Context& context);

 private:
  struct Row {
    roce::IpAddress group;
    int reports_left;  ///< without having been asked, as one may be lost
    Nanos due;         ///< of the next report
  };
  void tell(Context& context);
  void arm(Context& context);
  void send(Context& context, roce::Membership::Kind kind, std::span<const roce::IpAddress> groups);
  void send_all(Context& context, roce::Membership::Kind kind, bool is_mld);

  Core& core_;
  std::uint64_t seen_ = 0;
  std::vector<Row> rows_;                // by group, as the NIC's
  std::vector<roce::IpAddress> saying_;  // groups of one kind of report
  Timer timer_;
  Counter &reports_, &leaves_, &queries_, &bad_;
};

}  // namespace rocebox::nic_model
