// SPDX-License-Identifier: BSD-3-Clause
// Querier: when to ask who is a member, of both address families (RFC 3376, 6.6; RFC 3810, 7.6).
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "runtime/roce/membership.h"
#include "switch_model/snooping/config.h"
#include "switch_model/snooping/members.h"

namespace rocebox::switch_model::snooping {

/// A query that is due: a general one by all ports, or of one group by one port.
struct Query {
  bool is_mld;
  std::optional<GroupKey> group;
  Port port = kNoPort;  ///< kNoPort: by all
};

class Querier {
 public:
  explicit Querier(const Config& config);

  /// Its first queries are due; once, and not where it is none.
  void begin(Nanos now);
  /// Another querier has asked: one with a lower address goes on, and this one is silent.
  void hear(const roce::Membership& query, Nanos now);
  /// A port has left a group: is there nobody else behind it? Where this is the querier that asks.
  void ask(const GroupKey& key, bool is_mld, Port port, Nanos now);
  /// What is due by `now`, one after another.
  std::optional<Query> next(Nanos now);
  Nanos next_at() const;
  /// The frame of a query; how many bytes.
  std::uint32_t write(const Query& query, std::uint8_t* at) const;
  bool asks(bool is_mld, Nanos now) const { return begun_ && silent_until_[is_mld] <= now; }

 private:
  struct Pending {
    Nanos at;
    GroupKey key;
    bool is_mld;
    Port port;
  };
  const Config config_;
  std::array<roce::IpAddress, 2> address_{};  // of IGMP and MLD queries
  std::array<Nanos, 2> general_at_{kNever, kNever}, silent_until_{};
  std::array<std::int64_t, 2> soon_{};  // general queries that follow each other sooner
  std::vector<Pending> pending_;
  bool begun_ = false;
};

}  // namespace rocebox::switch_model::snooping
