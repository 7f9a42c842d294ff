// SPDX-License-Identifier: BSD-3-Clause
// Transmitter: the port's one serialiser, and whose turn it is: the NIC's own packets first, then groups of queue pairs
// as they are strict or weighted, and in a group queue pairs in turn. README.md has the policies.
#pragma once
#include <vector>

#include "nic_model/config.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/rate_queue.h"

namespace rocebox::nic_model {

class Core;
class Qp;

/// Queue pairs one behind the other; each stands in one list at most.
struct QpList {
  static constexpr unsigned kAhead = 4;  // so many packets take as long as memory needs
  Qp* first = nullptr;
  Qp* last = nullptr;
  Qp* recent[kAhead] = {};  // last pushed: each learns who comes so many places behind it
  unsigned pushed = 0;
  bool empty() const { return first == nullptr; }
  void push_back(Qp& qp);
  void push_front(Qp& qp);
  Qp& pop();
  /// Nothing here knows it any more. False: it did not stand here.
  bool remove(Qp& qp);
  /// All of `other` behind these.
  void append(QpList& other);
};

class Transmitter {
 public:
  explicit Transmitter(const NicConfig& config);

  /// `qp` is served in its turn; nothing when it stands in a list.
  void add(Context& context, Qp& qp);
  /// A packet of the NIC's own, before all queue pairs. False: too many wait, and it is the caller's to drop.
  bool add_control(Context& context, PacketPtr& packet);
  /// `qp` is about to go.
  void remove(Qp& qp);
  /// Queue pairs of these priorities (a bit each), and of no others, send nothing until the next call.
  void set_paused(Context& context, std::uint8_t priorities);
  /// The timer: sends what is due.
  void run(Context& context, Core& core);
  /// The timer of reads: asks for the data of the packets that come next. run() does it, too.
  void stage(Context& context);
  /// How long the last read of a packet's data took; 0: none did.
  Nanos pcie_latency() const { return pcie_latency_; }
  /// What was read of host memory, where PCIe is modelled.
  std::uint64_t pcie_bytes() const { return pcie_bytes_; }
  /// Of packets that were chosen and have not left.
  std::uint64_t staged_bytes() const { return staged_bytes_; }
  /// Brings what run() needs nearer, where `timer` is this one's.
  void prefetch(const Timer& timer) const;
  bool owns(const Timer& timer) const { return &timer == &timer_; }

  void prefetch_itself() const { prefetch_far_lines(this, this + 1); }
  /// Then: what leaves first.
  void prefetch_first() const;

 private:
  // Queue pairs of the priorities that share it.
  struct Group {
    bool strict = false;
    std::int64_t weight = 1;
    std::int64_t credit = 0;  // of a weighted one: bytes that it may send before others have had theirs
    QpList ready;
  };
  void arm(Context& context);
  void enter(Qp& qp, bool first);
  bool any_ready() const;
  Group* next_group();
  PacketPtr take(Context& context);
  PacketPtr choose(Context& context);
  PacketPtr take_staged(Context& context);
  Nanos read(Nanos now, Packet packet);
  bool goes_on(Qp& qp, Packet packet) const;
  void leave(Context& context, Core& core, PacketPtr packet);

  const NicConfig& config_;
  RateQueue rate_;
  const Nanos catch_up_;  // a port that is called late, as on a live wire, sends what it would have sent since
  std::uint64_t overhead_bytes_;
  Timer timer_;
  Timer reads_timer_;          // a read of host memory ends, so that another one may begin, whatever the port does then
  std::vector<Group> groups_;  // strict ones first, in the order in which they go
  std::uint8_t group_of_[8] = {};  // by priority
  std::size_t turn_ = 0;           // of weighted groups
  std::uint8_t paused_ = 0;        // priorities
  QpList parked_[8];               // ready, and of a priority that is paused
  double port_until_ = -1e18;      // its token bucket has a packet's worth again
  bool is_greedy_;
  std::uint64_t ahead_bytes_;
  bool is_limited_ = false;         // the timer stands for that, or for data that come over PCIe
  std::vector<PacketPtr> control_;  // a ring of kControlPacketsMax
  std::size_t control_first_ = 0, control_end_ = 0;
  struct Staged {
    PacketPtr packet;
    Nanos ready = 0;  // its data are there
  };
  std::vector<Staged> staged_;  // chosen and not yet sent, a ring; empty: packets are chosen as they leave
  std::size_t staged_first_ = 0, staged_end_ = 0;
  std::uint64_t staged_bytes_ = 0;
  double pcie_free_ = 0;  // when all data that were asked for have come over PCIe, its latency aside
  Nanos pcie_latency_ = 0;
  std::uint64_t pcie_bytes_ = 0;
  PacketPtr leaving_;  // its last bit is being sent until the timer fires
};

}  // namespace rocebox::nic_model
