// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/schedules.h"

#include <algorithm>
#include <bit>

namespace rocebox::nic_model {
namespace {

// A buffer of `size` bytes in as many parts as there are ranks; the first `size % ranks` are one byte longer.
struct Parts {
  std::uint64_t size;
  unsigned ranks;
  /// Bytes of the first `count` of them.
  std::uint64_t first(std::uint64_t count) const { return count * (size / ranks) + std::min(count, size % ranks); }
  /// Bytes of `count` from `begin` on.
  std::uint64_t of(std::uint64_t begin, std::uint64_t count = 1) const { return first(begin + count) - first(begin); }
};

class RingSchedule final : public Schedule {
 public:
  explicit RingSchedule(unsigned phases) : phases_(phases) {}
  unsigned steps(unsigned ranks) const override { return phases_ * (ranks - 1); }
  // Rank r begins with part r and passes on what came in the step before, in the second phase, too.
  void sends(unsigned rank, unsigned ranks, unsigned step, std::uint64_t size, std::vector<Send>& out) const override {
    out.push_back({(rank + 1) % ranks, Parts{size, ranks}.of((rank + 2 * ranks - step) % ranks)});
  }
  unsigned receives(unsigned, unsigned, unsigned) const override { return 1; }

 private:
  unsigned phases_;
};

class HalvingDoublingSchedule final : public Schedule {
 public:
  unsigned steps(unsigned ranks) const override { return 2 * static_cast<unsigned>(std::countr_zero(ranks)); }
  void sends(unsigned rank, unsigned ranks, unsigned step, std::uint64_t size, std::vector<Send>& out) const override {
    const unsigned half = steps(ranks) / 2;
    const unsigned level = step < half ? step : 2 * half - 1 - step;
    // Of the parts that both still have in common, halving gives the partner his half; doubling, each the own one.
    const unsigned parts = ranks >> (level + 1), partner = rank ^ parts;
    const unsigned whose = step < half ? partner : rank;
    out.push_back({partner, Parts{size, ranks}.of(whose & ~(parts - 1), parts)});
  }
  unsigned receives(unsigned, unsigned, unsigned) const override { return 1; }
};

class DoublingSchedule final : public Schedule {
 public:
  unsigned steps(unsigned ranks) const override { return static_cast<unsigned>(std::countr_zero(ranks)); }
  void sends(unsigned rank, unsigned ranks, unsigned step, std::uint64_t size, std::vector<Send>& out) const override {
    const unsigned parts = 1u << step;
    out.push_back({rank ^ parts, Parts{size, ranks}.of(rank & ~(parts - 1), parts)});
  }
  unsigned receives(unsigned, unsigned, unsigned) const override { return 1; }
};

class LinearSchedule final : public Schedule {
 public:
  /// `gathers`: each sends its own part to all; else each part to its rank.
  explicit LinearSchedule(bool gathers) : gathers_(gathers) {}
  unsigned steps(unsigned) const override { return 1; }
  void sends(unsigned rank, unsigned ranks, unsigned, std::uint64_t size, std::vector<Send>& out) const override {
    for (unsigned i = 1; i < ranks; i++) {
      const unsigned to = (rank + i) % ranks;
      out.push_back({to, Parts{size, ranks}.of(gathers_ ? rank : to)});
    }
  }
  unsigned receives(unsigned, unsigned ranks, unsigned) const override { return ranks - 1; }

 private:
  bool gathers_;
};

class PairwiseSchedule final : public Schedule {
 public:
  unsigned steps(unsigned ranks) const override { return ranks - 1; }
  void sends(unsigned rank, unsigned ranks, unsigned step, std::uint64_t size, std::vector<Send>& out) const override {
    const unsigned to = (rank + step + 1) % ranks;
    out.push_back({to, Parts{size, ranks}.of(to)});
  }
  unsigned receives(unsigned, unsigned, unsigned) const override { return 1; }
  bool waits_for_sends() const override { return true; }
};

// The farthest first, as MPI's libraries have it: in the step of distance d = k^i multiples of k d send to those 1, 2,
// ... k - 1 times d further. A rank's parent is the rank without its lowest digit, to the base k, that is not zero: of
// ranks in the order of racks most edges stay within a rack.
class KNomialSchedule final : public Schedule {
 public:
  explicit KNomialSchedule(unsigned radix) : radix_(radix) {}
  unsigned steps(unsigned ranks) const override {
    unsigned count = 0;
    for (std::uint64_t reached = 1; reached < ranks; reached *= radix_) count++;
    return count;
  }
  void sends(unsigned rank, unsigned ranks, unsigned step, std::uint64_t size, std::vector<Send>& out) const override {
    const std::uint64_t apart = distance(ranks, step);
    if (rank % (apart * radix_) != 0) return;
    for (unsigned j = 1; j < radix_; j++)
      if (const std::uint64_t to = rank + j * apart; to < ranks) out.push_back({static_cast<unsigned>(to), size});
  }
  unsigned receives(unsigned rank, unsigned ranks, unsigned step) const override {
    const std::uint64_t apart = distance(ranks, step);
    return rank % apart == 0 && rank % (apart * radix_) != 0;
  }
  bool waits_for_sends() const override { return true; }

 private:
  std::uint64_t distance(unsigned ranks, unsigned step) const {
    std::uint64_t apart = 1;
    for (unsigned i = step + 1; i < steps(ranks); i++) apart *= radix_;
    return apart;
  }
  unsigned radix_;
};

// A rank at depth d sends segment k in step d + k: it came in the step before.
class BinaryTreeSchedule final : public Schedule {
 public:
  explicit BinaryTreeSchedule(unsigned segments) : segments_(segments) {}
  unsigned steps(unsigned ranks) const override { return depth(ranks - 1) + segments_ - 1; }
  void sends(unsigned rank, unsigned ranks, unsigned step, std::uint64_t size, std::vector<Send>& out) const override {
    const unsigned segment = step - depth(rank);
    if (step < depth(rank) || segment >= segments_) return;
    const std::uint64_t begin = size * segment / segments_, end = size * (segment + 1) / segments_;
    for (const unsigned child : {2 * rank + 1, 2 * rank + 2})
      if (child < ranks) out.push_back({child, end - begin});
  }
  unsigned receives(unsigned rank, unsigned, unsigned step) const override {
    return rank > 0 && step + 1 >= depth(rank) && step + 1 - depth(rank) < segments_;
  }
  bool waits_for_sends() const override { return true; }

 private:
  static unsigned depth(unsigned rank) { return static_cast<unsigned>(std::bit_width(rank + 1)) - 1; }
  unsigned segments_;
};

}  // namespace

std::unique_ptr<Schedule> ring_schedule(unsigned phases) { return std::make_unique<RingSchedule>(phases); }
std::unique_ptr<Schedule> halving_doubling_schedule() { return std::make_unique<HalvingDoublingSchedule>(); }
std::unique_ptr<Schedule> doubling_schedule() { return std::make_unique<DoublingSchedule>(); }
std::unique_ptr<Schedule> all_to_all_schedule() { return std::make_unique<LinearSchedule>(false); }
std::unique_ptr<Schedule> linear_gather_schedule() { return std::make_unique<LinearSchedule>(true); }
std::unique_ptr<Schedule> pairwise_schedule() { return std::make_unique<PairwiseSchedule>(); }
std::unique_ptr<Schedule> k_nomial_schedule(unsigned radix) { return std::make_unique<KNomialSchedule>(radix); }
std::unique_ptr<Schedule> binary_tree_schedule(unsigned segments) {
  return std::make_unique<BinaryTreeSchedule>(segments);
}

}  // namespace rocebox::nic_model
