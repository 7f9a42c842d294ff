// SPDX-License-Identifier: BSD-3-Clause
// RoundRobin: which of the queues that one worker serves is next: those that have something, a datagram each in turn
// (V-C: software arbitration between communicators).
#pragma once
#include <cstdint>
#include <vector>

namespace rocebox::allgather {

class RoundRobin {
 public:
  static constexpr unsigned kNone = UINT32_MAX;

  /// One more queue; its number.
  unsigned add() {
    ready_.push_back(false);
    return static_cast<unsigned>(ready_.size() - 1);
  }
  void set_ready(unsigned queue, bool ready) { ready_[queue] = ready; }
  /// The next one behind that which was chosen last; kNone: none is ready.
  unsigned next() {
    for (std::size_t i = 1; i <= ready_.size(); i++) {
      const std::size_t at = (last_ + i) % ready_.size();
      if (ready_[at]) return last_ = static_cast<unsigned>(at);
    }
    return kNone;
  }

 private:
  std::vector<bool> ready_;
  unsigned last_ = 0;
};

}  // namespace rocebox::allgather
