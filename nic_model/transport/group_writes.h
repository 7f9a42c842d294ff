// SPDX-License-Identifier: BSD-3-Clause
// GroupWrites: WRITEs of unreliable connections to a multicast group, which no NIC that is sold knows: an extension
// that the multicast Allgather paper proposes (II-B, V-B). A WRITE's address is an offset, and its key names a window:
// each receiver says where its own memory of that window lies.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "nic_model/limits.h"
#include "runtime/roce/address.h"

namespace rocebox::nic_model {

/// Where WRITEs that name `name` go.
struct GroupWindow {
  std::uint32_t name = 0, key = 0;
  std::uint64_t address = 0;
};

/// What one queue pair that is attached to groups keeps of them.
class GroupWrites {
 public:
  /// A message of several packets that a source has begun and not ended.
  struct Message {
    roce::IpAddress source{};
    std::uint32_t next_psn = 0, name = 0, key = 0;
    std::uint64_t address = 0, length = 0, received = 0;
  };

  /// False: there are kGroupWindowsMax.
  bool set(const GroupWindow& window) {
    clear(window.name);
    if (windows_.size() >= kGroupWindowsMax) return false;
    windows_.push_back(window);
    return true;
  }
  /// Nothing is written there any more, nor the rest of what has begun.
  void clear(std::uint32_t name) {
    std::erase_if(messages_, [&](const Message& one) { return one.name == name; });
    std::erase_if(windows_, [&](const GroupWindow& one) { return one.name == name; });
  }
  const GroupWindow* find(std::uint32_t name) const {
    for (const GroupWindow& one : windows_)
      if (one.name == name) return &one;
    return nullptr;
  }
  /// What a source, who sends to the group from one queue pair, is in the midst of; null: nothing.
  Message* find(const roce::IpAddress& source) {
    const auto at = place_of(source);
    return at != messages_.end() && at->source == source ? &*at : nullptr;
  }
  /// Keeps the first packet's state for the next one. False: kGroupSourcesMax others are in the midst of one.
  bool open(const Message& message) {
    const auto at = place_of(message.source);
    if (at != messages_.end() && at->source == message.source) return *at = message, true;
    if (messages_.size() >= kGroupSourcesMax) return false;
    messages_.insert(at, message);
    return true;
  }
  /// Whatever the source is in the midst of is lost, or at its end.
  void close(const roce::IpAddress& source) {
    const auto at = place_of(source);
    if (at != messages_.end() && at->source == source) messages_.erase(at);
  }
  void reset() {
    windows_.clear();
    messages_.clear();
  }

 private:
  std::vector<Message>::iterator place_of(const roce::IpAddress& source) {
    return std::lower_bound(messages_.begin(), messages_.end(), source,
                            [](const Message& one, const roce::IpAddress& other) { return one.source < other; });
  }

  std::vector<GroupWindow> windows_;
  std::vector<Message> messages_;  // by source
};

}  // namespace rocebox::nic_model
