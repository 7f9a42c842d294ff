// SPDX-License-Identifier: BSD-3-Clause
// What nic_fuzz.cc stands on: two NICs in virtual time, and a wire between them that does as the input says.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/engine/fabric.h"
#include "runtime/engine/pipeline_device.h"
#include "runtime/process/eal.h"
#include "tests/fuzz/nic_meddler.h"
#include "tests/fuzz/nic_setup.h"

namespace rocebox::fuzz::nic_bed {

inline constexpr PoolSizes kSizes{.small = 8192, .large = 2048, .giant = 4};
inline constexpr Nanos kDelay = kMicrosecond;
inline constexpr std::size_t kHeldMax = 64, kFatesMax = 64;
/// Instants of one input: several times what the longest program needs that lets all its time pass.
inline constexpr unsigned kInstantsMax = 200'000;
inline Pool* pool = nullptr;

class Bed {
 public:
  enum class Fate : std::uint8_t { kPass, kDrop, kTwice, kHold, kLate, kCount };
  /// Sees what leaves a side.
  using Look = std::function<void(unsigned side, Packet packet)>;

  /// `queue_pairs` are all that a side has at a time.
  Bed(const NicSetup& setup, std::size_t queue_pairs, Look look)
      : look_(std::move(look)), fabric_([this](FabricPort from, std::span<Packet> packets, Nanos now) {
          for (Packet packet : packets) leave(from.device, PacketPtr(packet), now);
        }) {
    for (unsigned side = 0; side < 2; side++) {
      std::vector<KernelPlan> plans;
      plans.push_back({"k", "nic", Shape::kOneWay, {{Edge::kOutside, 0}}, [&setup, side](Stats& stats) {
                         return options_of(side, setup).make(stats);
                       }});
      devices_.push_back(std::make_unique<PipelineDevice>("nic" + std::to_string(side),
                                                          std::vector<std::string>{"wire"}, std::vector<Edge>{{0, 0}},
                                                          std::move(plans), *pool, 1));
      devices_.back()->set_batch_max(1);
      fabric_.add(*devices_.back());
      if (setup.meddles) {
        auto meddler = std::make_unique<Meddler>(queue_pairs);
        meddlers_[side] = meddler.get();
        nic(side).observe_by(std::move(meddler));
      }
      host(side).set_waker([this, side] { fabric_.wake(side); });
    }
  }

  nic_model::Nic& nic(unsigned side) { return static_cast<nic_model::Nic&>(devices_[side]->kernel(0)); }
  nic_model::Host& host(unsigned side) { return nic(side).host(); }
  /// Null: its observer is another.
  Meddler* meddler(unsigned side) { return meddlers_[side]; }
  Nanos now() const { return now_; }
  /// What becomes of the next packets that leave a side.
  void add_fates(unsigned side, Fate fate, unsigned packets) {
    while (packets-- > 0 && fates_[side].size() < kFatesMax) fates_[side].push_back(fate);
  }
  /// Nothing that leaves this side arrives.
  void cut(unsigned side, bool is_cut) { cut_[side] = is_cut; }
  /// What was held back arrives in the next instant.
  void release(unsigned side) {
    for (PacketPtr& packet : held_[side]) fly(side, std::move(packet), now_ + 1);
    held_[side].clear();
  }
  void forget_fates(unsigned side) { fates_[side].clear(); }

  /// All that happens now.
  void settle() { advance(0); }
  void advance(Nanos span) {
    const Nanos end = now_ + span;
    fabric_.run(now_);
    while (std::min(fabric_.next_deadline(), next_arrival()) <= end) {
      now_ = std::max(now_, std::min(fabric_.next_deadline(), next_arrival()));
      require(++instants_ < kInstantsMax, "it comes to rest");
      while (!flying_.empty() && flying_.begin()->first <= now_) {
        auto [to, packet] = std::move(flying_.begin()->second);
        flying_.erase(flying_.begin());
        fabric_.inject({to, 0}, packet.release());
      }
      fabric_.run(now_);
    }
    now_ = end;
  }
  /// Comes to a side in an instant of its own.
  void inject(unsigned side, PacketPtr packet) {
    fabric_.inject({side, 0}, packet.release());
    fabric_.run(now_);
  }
  bool is_quiet() { return fabric_.next_deadline() == kNever && flying_.empty(); }
  void require_conservation() {
    require(pool->in_use() == fabric_.held() + flying_.size() + held_[0].size() + held_[1].size(),
            "in + made == out + dropped + held");
  }

 private:
  Nanos next_arrival() const { return flying_.empty() ? kNever : flying_.begin()->first; }
  void fly(unsigned from, PacketPtr packet, Nanos at) {
    flying_.emplace(at, std::make_pair(1 - from, std::move(packet)));
  }
  void leave(unsigned side, PacketPtr packet, Nanos now) {
    look_(side, *packet);
    Fate fate = cut_[side] ? Fate::kDrop : Fate::kPass;
    if (!fates_[side].empty()) fate = fates_[side].front(), fates_[side].pop_front();
    if (fate == Fate::kHold && held_[side].size() >= kHeldMax) fate = Fate::kDrop;
    switch (fate) {
      case Fate::kDrop:
        return;
      case Fate::kHold:
        return held_[side].push_back(std::move(packet));
      case Fate::kTwice:
        if (PacketPtr copy = pool->copy(*packet)) fly(side, std::move(copy), now + 3 * kDelay);
        [[fallthrough]];
      default:
        fly(side, std::move(packet), now + (fate == Fate::kLate ? 4 * kDelay : kDelay));
    }
  }

  Look look_;
  std::vector<std::unique_ptr<PipelineDevice>> devices_;
  Meddler* meddlers_[2] = {};
  Fabric fabric_;
  std::multimap<Nanos, std::pair<unsigned, PacketPtr>> flying_;  // when it arrives, and where
  std::vector<PacketPtr> held_[2];                               // by side that they left
  std::deque<Fate> fates_[2];
  bool cut_[2] = {};
  Nanos now_ = 0;
  unsigned instants_ = 0;
};

}  // namespace rocebox::fuzz::nic_bed
