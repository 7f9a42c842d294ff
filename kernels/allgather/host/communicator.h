// SPDX-License-Identifier: BSD-3-Clause
// Communicator: one at one rank: its subgroups, its connections to other ranks, and its collectives.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "kernels/allgather/host/link.h"
#include "kernels/allgather/host/slot.h"
#include "kernels/allgather/host/subgroup.h"

namespace rocebox::allgather {

class Communicator {
 public:
  Communicator(Rank& rank, unsigned number);

  Rank& rank() const { return rank_; }
  unsigned number() const { return number_; }
  const TeamOptions& options() const;
  const ImmediateLayout& layout() const { return layout_; }
  unsigned left() const;
  unsigned right() const;
  Subgroup& subgroup(unsigned number) { return *subgroups_[number]; }
  unsigned subgroups() const { return static_cast<unsigned>(subgroups_.size()); }
  unsigned slots() const { return static_cast<unsigned>(slots_.size()); }
  Slot& slot(unsigned number) { return *slots_[number]; }
  const Slot& slot(unsigned number) const { return *slots_[number]; }
  Slot& slot_for(std::uint32_t sequence) { return *slots_[sequence % slots_.size()]; }
  bool has_failed() const { return has_failed_; }

  /// Queue pairs of this side.
  void make(nic_model::Host& host, nic_model::CompletionQueue& send_cq, nic_model::CompletionQueue& control_cq,
            nic_model::ReceiveQueue& receives);
  /// Connects them to those of the others, which are made.
  void connect(nic_model::Host& host);
  /// All ranks are known: chunks may come.
  void run();
  const std::map<std::pair<LinkTo, unsigned>, std::unique_ptr<Link>>& links() const { return links_; }
  Link& link(LinkTo to, unsigned peer) { return *links_.at({to, peer}); }

  /// The collective whose chunk it is; null: none that is under way here.
  Slot* slot_of(std::uint32_t immediate) {
    Slot* slot = by_collective_[layout_.decode(immediate).collective];
    return slot && slot->tag() == layout_.tag(immediate) ? slot : nullptr;
  }
  // receive: dpa: the workers of a collective, who together tell that all of it is there.
  std::uint64_t begin_team(const Slot& slot);
  bool team_is_done(const Slot& slot) const;
  void set_active(Slot& slot, bool active);
  void on_message(const Link& from, const ControlMessage& message);
  /// All its collectives end so: its connections and groups are of no use any more.
  void fail(End end);

 private:
  void add_link(LinkTo to, unsigned peer);

  Rank& rank_;
  const unsigned number_;
  const ImmediateLayout layout_;
  std::vector<std::unique_ptr<Subgroup>> subgroups_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> by_collective_;
  std::vector<std::uint64_t> teams_, flags_;  // by slot: struct allgather_team in the device, and the host's flag
  std::uint32_t window_ = 0, flags_key_ = 0;
  std::map<std::pair<LinkTo, unsigned>, std::unique_ptr<Link>> links_;
  bool has_failed_ = false;
};

}  // namespace rocebox::allgather
