// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/connect/group_reports.h"

#include <algorithm>

#include "runtime/roce/parse.h"

namespace rocebox::nic_model {
namespace {

using Kind = roce::Membership::Kind;

// RFC 3376, 8.1 and 8.11; RFC 2236, 8.10 has ten seconds.
constexpr int kRobustness = 2;
constexpr Nanos kUnsolicitedInterval = kSecond, kOldUnsolicitedInterval = 10 * kSecond;

bool is_old(const NicConfig& config) { return config.group_reports == GroupReportsOption::kOld; }

}  // namespace

GroupReports::GroupReports(Core& core, Stats& stats)
    : core_(core),
      timer_(timer_tag(TimerOf::kNeighbors, 1)),
      reports_(stats.counter("group_reports_sent", "IGMP and MLD reports sent")),
      leaves_(stats.counter("group_leaves_sent", "IGMP and MLD messages sent that a group was left")),
      queries_(stats.counter("group_queries", "IGMP and MLD queries that came")),
      bad_(stats.counter("group_messages_bad", "IGMP and MLD messages that came and must not be acted upon")) {}

// What has come since is said now and once more; what has gone is said once.
void GroupReports::tell(Context& context) {
  seen_ = core_.groups.changes();
  std::vector<Row> rows;
  saying_.clear();
  for (std::size_t i = 0; i < core_.groups.groups(); i++) {
    const roce::IpAddress& group = core_.groups.address(i);
    const auto known = std::ranges::find(rows_, group, &Row::group);
    rows.push_back(known != rows_.end() ? *known : Row{group, kRobustness, context.now()});
  }
  for (const Row& row : rows_)
    if (std::ranges::find(rows, row.group, &Row::group) == rows.end() && !roce::is_link_local_group(row.group))
      saying_.push_back(row.group);
  rows_ = std::move(rows);
  for (const bool is_mld : {false, true}) send_all(context, Kind::kLeave, is_mld);
  on_timer(context);
}

void GroupReports::on_timer(Context& context) {
  saying_.clear();
  for (Row& row : rows_) {
    if (row.due > context.now()) continue;
    row.reports_left = std::max(0, row.reports_left - 1);
    row.due = row.reports_left > 0
                  ? context.now() + (is_old(core_.config) ? kOldUnsolicitedInterval : kUnsolicitedInterval)
                  : kNever;
    if (!roce::is_link_local_group(row.group)) saying_.push_back(row.group);
  }
  for (const bool is_mld : {false, true}) send_all(context, Kind::kReport, is_mld);
  arm(context);
}

void GroupReports::arm(Context& context) {
  Nanos first = kNever;
  for (const Row& row : rows_) first = std::min(first, row.due);
  if (first != kNever) context.arm(timer_, first);
}

// Those of `saying_` that are of one address family.
void GroupReports::send_all(Context& context, Kind kind, bool is_mld) {
  std::array<roce::IpAddress, roce::kReportGroupsMax> some;
  std::size_t count = 0;
  const std::size_t most = is_old(core_.config) ? 1 : some.size();
  for (const roce::IpAddress& group : saying_) {
    if (roce::is_ipv4(group) == is_mld) continue;
    some[count++] = group;
    if (count < most) continue;
    send(context, kind, {some.data(), count});
    count = 0;
  }
  if (count > 0) send(context, kind, {some.data(), count});
}

void GroupReports::send(Context& context, Kind kind, std::span<const roce::IpAddress> groups) {
  roce::MembershipFrame frame;
  frame.kind = kind;
  frame.is_mld = !roce::is_ipv4(groups[0]);
  frame.version = static_cast<std::uint8_t>((frame.is_mld ? 2 : 3) - is_old(core_.config));
  frame.source_mac = core_.config.mac_address();
  // MLD's come from a link-local address, or from none (RFC 3810, 5.2.13).
  const roce::IpAddress own = core_.config.source_for(groups[0]);
  frame.source = frame.is_mld ? roce::IpAddress{} : roce::is_ipv4(own) ? own : roce::ipv4(0, 0, 0, 0);
  frame.groups = groups;
  std::uint8_t bytes[roce::kMembershipBytesMax];
  const std::uint32_t size = roce::write_membership(bytes, frame);
  PacketPtr packet = context.allocate(size);
  if (!packet) return core_.count.tx_no_packet.add();
  std::copy_n(bytes, size, packet->data());
  roce::parse(*packet);
  if (!core_.transmitter.add_control(context, packet))
    return context.drop(std::move(packet), core_.count.drop_control_full);
  (kind == Kind::kReport ? reports_ : leaves_).add();
}

bool GroupReports::on_packet(Context& context, Packet packet) {
  if (core_.config.group_reports == GroupReportsOption::kOff) return false;
  const roce::Membership message = roce::read_membership(packet);
  if (message.kind == Kind::kNone) return false;
  if (message.kind == Kind::kBad) bad_.add();
  if (message.kind != Kind::kQuery) return true;
  queries_.add();
  for (Row& row : rows_) {
    if (roce::is_ipv4(row.group) == message.is_mld) continue;
    if (message.group != roce::IpAddress{} && message.group != row.group) continue;
    const Nanos within = std::max<Nanos>(1, message.response_time);
    const auto wait = static_cast<Nanos>(context.random() % static_cast<std::uint64_t>(within));
    row.due = std::min(row.due, context.now() + wait);
  }
  arm(context);
  return true;
}

}  // namespace rocebox::nic_model
