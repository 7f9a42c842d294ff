// SPDX-License-Identifier: BSD-3-Clause
// Observer: the kernel itself. process() reads packets, report() writes what was found; nothing is changed.
#pragma once
#include <array>

#include "kernels/allgather/observer/chunk_window.h"
#include "kernels/allgather/observer/config.h"
#include "kernels/allgather/observer/counters.h"
#include "kernels/allgather/observer/staging_model.h"
#include "runtime/flows/flow_table.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::allgather {

class Observer final : public Kernel {
 public:
  using Config = ObserverConfig;

  Observer(const Config& config, Stats& stats);
  void process(Context& context, Port in, Batch& batch) override;
  void report(Report& report) const override;
  /// `check_icrc` and `cutoff` can be changed while packets flow; what sizes tables cannot.
  std::unique_ptr<Change> prepare(const Config& config) const;

 private:
  struct Switch;
  /// One source's chunks of one collective in one group.
  struct StreamKey {
    roce::IpAddress group, source;
    std::uint32_t source_qpn;  ///< 0 of UC, which does not name it
    std::uint32_t tag;         ///< the immediate without its chunk
  };
  struct Stream {
    ChunkWindow window;
    std::uint32_t collective, group;  ///< their numbers
    std::uint32_t duplicates, out_of_order, late, beyond_window, restarts;
    std::uint64_t bytes;
    Nanos first_at, last_at;
  };
  static_assert(sizeof(Stream) == 64 && sizeof(StagingModel) == 56);  // as its README says
  struct Collective {
    Nanos first_at, last_at;
  };
  struct GroupKey {
    roce::IpAddress address;
  };
  enum class EventKind : std::uint8_t { kSkipped, kOutOfOrder, kDuplicate, kLate, kOverrun, kBeyondWindow, kRestart };
  /// Something that happened to `count` chunks in a row.
  struct Event {
    Nanos at;
    std::uint32_t stream, chunk, count;
    EventKind kind;
  };
  using Streams = flows::FlowTable<StreamKey>;
  static constexpr std::uint32_t kNone = Streams::kNone;
  // What a packet is, found for the whole batch before any is counted.
  struct Lookup {
    StreamKey key;
    std::uint64_t hash;
    std::uint32_t chunk, index;
    bool counts;
  };

  bool name(Packet packet, Lookup& lookup);
  bool refuse(Counter& reason);
  void receive(Packet packet, Lookup& lookup, Nanos now);
  std::uint32_t make(const Lookup& lookup, Nanos now);
  void begin_again(std::uint32_t index, Nanos now);
  void count(std::uint32_t index, std::uint32_t chunk, std::uint32_t bytes, Nanos now);
  void log(EventKind kind, std::uint32_t stream, std::uint32_t chunk, std::uint32_t count, Nanos now);
  std::uint64_t* words(std::uint32_t stream) { return windows_.data() + std::size_t{stream} * (window_ / 64); }
  const std::uint64_t* words(std::uint32_t stream) const {
    return windows_.data() + std::size_t{stream} * (window_ / 64);
  }
  std::uint32_t collective_of(std::uint32_t tag) const { return tag & collective_mask_; }
  std::uint32_t generation_of(std::uint32_t tag) const {
    return static_cast<std::uint32_t>(std::uint64_t{tag} >> config_.collective_bits);
  }

  void report_collectives(Report& report) const;
  void report_streams(Report& report) const;
  void report_groups(Report& report) const;
  void report_events(Report& report) const;
  static std::string_view name_of(EventKind kind);

  const Config config_;
  ObserverCounters count_;
  bool check_icrc_;
  Nanos cutoff_;
  const std::uint32_t window_, chunk_mask_, collective_mask_, events_max_;
  const StagingModel::Speed staging_;
  Streams table_;
  flows::ZeroedArray<Stream> streams_;
  flows::ZeroedArray<std::uint64_t> windows_;
  flows::FlowTable<std::uint32_t> collective_table_;
  flows::ZeroedArray<Collective> collectives_;
  flows::FlowTable<GroupKey> group_table_;
  flows::ZeroedArray<StagingModel> groups_;
  flows::ZeroedArray<Nanos> slots_;
  flows::ZeroedArray<Event> events_;
  std::uint32_t events_size_ = 0;
  std::uint64_t events_unlisted_ = 0;
};

}  // namespace rocebox::allgather
