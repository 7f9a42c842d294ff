// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/snooping/querier.h"

#include <algorithm>

namespace rocebox::switch_model::snooping {
namespace {

// Leaves that are asked about at a time; more end as they would without an answer.
constexpr std::size_t kPendingMax = 1024;
// Queries at the start follow each other in a quarter of the interval (RFC 3376, 8.6).
constexpr Nanos kSooner = 4;

}  // namespace

Querier::Querier(const Config& config) : config_(config) {
  address_[0] = config.querier_address.value_or(roce::ipv4(0, 0, 0, 0));
  address_[1] = roce::link_local(config.querier_mac.value_or(Mac{}));
  pending_.reserve(kPendingMax);
}

void Querier::begin(Nanos now) {
  if (begun_ || !config_.querier) return;
  begun_ = true;
  general_at_ = {now, now};
  soon_ = {config_.robustness, config_.robustness};
}

void Querier::hear(const roce::Membership& query, Nanos now) {
  if (!begun_) return;
  const roce::IpAddress& mine = address_[query.is_mld];
  const bool has_none = query.source == roce::ipv4(0, 0, 0, 0);
  const bool gives_way = !has_none && (mine == roce::ipv4(0, 0, 0, 0) || query.source < mine);
  if (!gives_way) return;
  silent_until_[query.is_mld] = now + config_.querier_time();
  general_at_[query.is_mld] = silent_until_[query.is_mld];
}

void Querier::ask(const GroupKey& key, bool is_mld, Port port, Nanos now) {
  if (!asks(is_mld, now)) return;
  for (std::int64_t i = 0; i < config_.robustness && pending_.size() < kPendingMax; i++)
    pending_.push_back({now + i * config_.last_member_time, key, is_mld, port});
}

std::optional<Query> Querier::next(Nanos now) {
  for (const bool is_mld : {false, true}) {
    if (general_at_[is_mld] > now) continue;
    const bool sooner = soon_[is_mld] > 1;
    soon_[is_mld] -= sooner;
    general_at_[is_mld] = now + (sooner ? config_.query_interval / kSooner : config_.query_interval);
    return Query{is_mld, std::nullopt, kNoPort};
  }
  const auto due = std::ranges::find_if(pending_, [now](const Pending& one) { return one.at <= now; });
  if (due == pending_.end()) return std::nullopt;
  const Query query{due->is_mld, due->key, due->port};
  pending_.erase(due);
  return query;
}

Nanos Querier::next_at() const {
  Nanos at = std::min(general_at_[0], general_at_[1]);
  for (const Pending& one : pending_) at = std::min(at, one.at);
  return at;
}

std::uint32_t Querier::write(const Query& query, std::uint8_t* at) const {
  roce::MembershipFrame frame;
  frame.is_mld = query.is_mld;
  frame.version = query.is_mld ? 2 : 3;
  frame.source_mac = config_.querier_mac.value_or(Mac{});
  frame.source = address_[query.is_mld];
  if (query.group) frame.groups = {&query.group->group, 1};
  frame.response_time = query.group ? config_.last_member_time : config_.response_time;
  frame.robustness = static_cast<std::uint8_t>(config_.robustness);
  frame.interval_seconds = static_cast<std::uint16_t>(std::min<Nanos>(config_.query_interval / kSecond, UINT16_MAX));
  return roce::write_membership(at, frame);
}

}  // namespace rocebox::switch_model::snooping
