// SPDX-License-Identifier: BSD-3-Clause
// Connections: which transport queue pairs are of one connection of SDR, of which generation each is, and which message
// an ID stands for, now that IDs are used again and again.
#pragma once
#include <cstdint>

#include "kernels/sdr/observer/config.h"
#include "runtime/flows/flow_table.h"
#include "runtime/flows/zeroed_array.h"
#include "runtime/roce/parse.h"

namespace rocebox::sdr::observer {

struct QpKey {
  roce::Addresses addresses;
  std::uint32_t qpn;
};
/// `value` is the remote key, or 0; of a connection that the options number: that number, and no source.
struct GroupKey {
  roce::Addresses addresses;
  std::uint32_t value, is_numbered;
};

/// A transport queue pair.
struct TransportQp {
  std::uint32_t group, generation;
  bool has_generation;
  std::uint64_t packets;
  Nanos first, last;
};

/// A connection of SDR.
struct Group {
  std::uint64_t highest;  ///< number of the newest message; 0: none has come
  std::uint32_t ids;      ///< message IDs in use
  std::uint32_t mtu;      ///< bytes of a full packet; 0: not known yet
  bool ids_known;
  std::uint64_t packets, bytes, messages, complete, duplicates, late, outside, beyond, missing;
  Nanos first, last;
};

class Connections {
 public:
  static constexpr std::uint32_t kNone = flows::FlowTable<QpKey>::kNone;

  explicit Connections(const Config& config);

  flows::FlowTable<QpKey>& table() { return qp_table_; }
  /// The queue pair of a packet that is new; kNone: there is no room for it or its connection.
  std::uint32_t add(const QpKey& key, std::uint64_t hash, std::uint32_t rkey);
  /// The number of the message that a packet with that ID belongs to; numbers of one ID are a multiple of the IDs
  /// apart, and a higher one is newer. `has_come`: that packet of the message that has the ID has come already.
  std::uint64_t number_of(TransportQp& qp, std::uint32_t id, bool has_come);

  /// Whether a message of the queue pair's generation that has the packet's ID now is still the one that is meant: so
  /// it is for nearly all packets, and number_of() need not be asked.
  bool is_current(const TransportQp& qp, std::uint64_t number, std::uint32_t generation) const {
    const Group& group = groups_[qp.group];
    return qp.has_generation && number && generation == qp.generation && number <= group.highest &&
           group.highest - number < std::uint64_t{group.ids} * generations_ - group.ids / 2;
  }

  TransportQp& qp(std::uint32_t index) { return qps_[index]; }
  const TransportQp& qp(std::uint32_t index) const { return qps_[index]; }
  const QpKey& qp_key(std::uint32_t index) const { return qp_table_.key(index); }
  std::uint32_t qps() const { return qp_table_.size(); }
  Group& group(std::uint32_t index) { return groups_[index]; }
  const Group& group(std::uint32_t index) const { return groups_[index]; }
  const GroupKey& group_key(std::uint32_t index) const { return group_table_.key(index); }
  std::uint32_t groups() const { return group_table_.size(); }
  std::uint32_t generations() const { return generations_; }
  /// The number of the first message with ID 0 of generation 0: one round of all generations up, so that there is room
  /// for what is late.
  std::uint64_t first_number() const { return std::uint64_t{slots_} * generations_; }

 private:
  const QpRow* row_of(const QpKey& key) const;

  const std::vector<QpRow> rows_;
  const bool by_rkey_;
  const std::uint32_t generations_, slots_, mtu_;
  const bool ids_known_;
  flows::FlowTable<QpKey> qp_table_;
  flows::ZeroedArray<TransportQp> qps_;
  flows::FlowTable<GroupKey> group_table_;
  flows::ZeroedArray<Group> groups_;
};

}  // namespace rocebox::sdr::observer
