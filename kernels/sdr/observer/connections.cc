// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/observer/connections.h"

#include <bit>

namespace rocebox::sdr::observer {
namespace {

// The number that is `rest` modulo `modulus`, and at most `ahead_max` behind `newest`, else before it.
std::uint64_t nearest(std::uint64_t rest, std::uint64_t modulus, std::uint64_t newest, std::uint64_t ahead_max) {
  const std::uint64_t ahead = (rest + modulus - newest % modulus) % modulus;
  return ahead <= ahead_max || newest + ahead < modulus ? newest + ahead : newest + ahead - modulus;
}

}  // namespace

Connections::Connections(const Config& config)
    : rows_(config.queue_pairs),
      by_rkey_(config.connections_by == GroupBy::kRkey),
      generations_(static_cast<std::uint32_t>(config.generations)),
      slots_(config.slots()),
      mtu_(config.mtu_bytes()),
      ids_known_(config.messages != 0),
      qp_table_(static_cast<std::uint32_t>(config.qps)),
      qps_(qp_table_.capacity()),
      group_table_(static_cast<std::uint32_t>(config.connections)),
      groups_(group_table_.capacity()) {}

const QpRow* Connections::row_of(const QpKey& key) const {
  for (const QpRow& row : rows_)
    if (*row.destination == key.addresses.destination && key.qpn >= row.first_qpn &&
        key.qpn < row.first_qpn + row.channels)
      return &row;
  return nullptr;
}

std::uint32_t Connections::add(const QpKey& key, std::uint64_t hash, std::uint32_t rkey) {
  const QpRow* row = row_of(key);
  GroupKey group_key{};
  if (row)
    group_key = {{{}, key.addresses.destination}, static_cast<std::uint32_t>(row->connection), 1};
  else
    group_key = {key.addresses, by_rkey_ ? rkey : 0, 0};
  std::uint32_t group = group_table_.find(group_key);
  if (group == kNone) {
    if (qp_table_.size() == qp_table_.capacity()) return kNone;
    group = group_table_.insert(group_key);
    if (group == kNone) return kNone;
    groups_[group] = {};
    groups_[group].ids = slots_;
    groups_[group].ids_known = ids_known_;
    groups_[group].mtu = mtu_;
  }
  const std::uint32_t index = qp_table_.insert(key, hash);
  if (index == kNone) return kNone;
  qps_[index] = {};
  qps_[index].group = group;
  if (row) {
    qps_[index].generation = static_cast<std::uint32_t>(row->generation);
    qps_[index].has_generation = true;
  }
  return index;
}

std::uint64_t Connections::number_of(TransportQp& qp, std::uint32_t id, bool has_come) {
  Group& group = groups_[qp.group];
  const std::uint64_t all = std::uint64_t{group.ids} * generations_;
  if (!group.highest) {
    if (!qp.has_generation) qp.generation = 0, qp.has_generation = true;
    return group.highest = first_number() + std::uint64_t{group.ids} * qp.generation + id;
  }
  if (!qp.has_generation) {
    // By a queue pair that had carried nothing a packet comes that has come by another: IDs begin anew, before all were
    // used, so there are no more.
    const auto newest = static_cast<std::uint32_t>(group.highest % group.ids);
    if (has_come && !group.ids_known && generations_ > 1 && newest + 1 >= kIdsMin && id < (newest + 1) / 4 &&
        std::has_single_bit(newest + 1)) {
      group.ids = newest + 1;
      group.ids_known = true;
    }
    const std::uint64_t number = nearest(id, group.ids, group.highest, group.ids / 2);
    qp.generation = static_cast<std::uint32_t>(number / group.ids % generations_);
    qp.has_generation = true;
    if (number / group.ids != group.highest / group.ids) group.ids_known = true;
    return group.highest = std::max(group.highest, number), number;
  }
  const std::uint64_t rest = id + std::uint64_t{group.ids} * qp.generation;
  const std::uint64_t number = nearest(rest % all, all, group.highest, group.ids / 2);
  return group.highest = std::max(group.highest, number), number;
}

}  // namespace rocebox::sdr::observer
