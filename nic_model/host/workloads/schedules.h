// SPDX-License-Identifier: BSD-3-Clause
// Schedules: who sends how much to whom in which step of a collective over reliable connections.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace rocebox::nic_model {

/// The steps of a collective, by rank in its group.
class Schedule {
 public:
  virtual ~Schedule() = default;
  struct Send {
    unsigned to;
    std::uint64_t bytes;
  };
  virtual unsigned steps(unsigned ranks) const = 0;
  /// What `rank` sends in `step`; all of step - 1 that it is sent must have come before.
  virtual void sends(unsigned rank, unsigned ranks, unsigned step, std::uint64_t size,
                     std::vector<Send>& out) const = 0;
  /// How many transfers come to `rank` in `step`.
  virtual unsigned receives(unsigned rank, unsigned ranks, unsigned step) const = 0;
  /// Whether a step also waits until what the rank has sent in the one before is with its receivers: children of a tree
  /// are served one after the other, so that the first one passes on what it has while the next one gets it.
  virtual bool waits_for_sends() const { return false; }
};

// `size` is what each rank has in the end, or of a ReduceScatter in the beginning: n parts, of which the first
// `size` % n are one byte longer. A part of no bytes is a message as others are.

/// S / n to the next neighbour in each of `phases` * (n - 1) steps.
std::unique_ptr<Schedule> ring_schedule(unsigned phases);
/// Recursive halving, partners n / 2, n / 4, ... 1 apart, then doubling, 1, 2, ... n / 2 apart.
std::unique_ptr<Schedule> halving_doubling_schedule();
/// Recursive doubling: partners 1, 2, 4, ... apart, who send all that they have.
std::unique_ptr<Schedule> doubling_schedule();
/// S / n from each to each other at once, beginning with the next one.
std::unique_ptr<Schedule> all_to_all_schedule();
/// A rank's own part to each other at once, beginning with the next one.
std::unique_ptr<Schedule> linear_gather_schedule();
/// S / n from each to the one k places further in step k, one step after the other, as MPI's pairwise exchange.
std::unique_ptr<Schedule> pairwise_schedule();
/// From rank 0: in each step a rank that has all sends it to `radix` - 1 others, so that there are `radix` times as
/// many.
std::unique_ptr<Schedule> k_nomial_schedule(unsigned radix);
/// From rank 0, whose children are 1 and 2, theirs 3 to 6, and so on; in `segments` parts, which follow each other.
std::unique_ptr<Schedule> binary_tree_schedule(unsigned segments);

}  // namespace rocebox::nic_model
