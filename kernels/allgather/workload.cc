// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/workload.h"

#include <algorithm>
#include <map>
#include <memory>

#include "kernels/allgather/host/team.h"
#include "kernels/allgather/limits.h"
#include "runtime/kernel/collectives.h"

namespace rocebox::allgather {
namespace {

constexpr std::uint64_t kBlockBytesMax = std::uint64_t{1} << 30;  // one READ may fetch all of it
constexpr std::uint64_t kBufferStride = std::uint64_t{1} << 44;   // from one buffer's address to the next one's

struct WorkloadConfig {
  TeamOptions team;
  std::uint64_t size = 64 << 10;
  std::int64_t chains = 1, iterations = 1, root = 0;
};

// What rank `block` gives to a collective at `offset`: no two collectives, ranks or places look alike for long.
std::uint8_t given(const Operation& operation, unsigned block, std::uint64_t offset) {
  std::uint64_t x = offset + (std::uint64_t{block} << 32) + (std::uint64_t{operation.sequence} << 46) +
                    (std::uint64_t{operation.communicator} << 58);
  x = (x ^ x >> 31) * 0x9E3779B97F4A7C15;
  return static_cast<std::uint8_t>(x >> 56);
}

class MulticastWorkload final : public Workload, public CollectiveTimes, private Application {
 public:
  MulticastWorkload(std::span<const WorkloadHost> hosts, const WorkloadConfig& config, bool is_broadcast)
      : config_(config), is_broadcast_(is_broadcast), team_(hosts, config.team, *this, agreed(config, is_broadcast)) {
    const unsigned stopped = config.team.stop_at != StopAt::kNever;
    if (stopped && config.team.stop_rank >= static_cast<std::int64_t>(hosts.size()))
      throw ConfigError("`stop.rank` is none of its hosts");
    if (is_broadcast && config.root >= static_cast<std::int64_t>(team_.ranks()))
      throw ConfigError("`root` is none of its ranks");
    const auto chunks = (config.size + config.team.chunk_bytes() - 1) / config.team.chunk_bytes() * blocks();
    if (chunks > config.team.layout().chunks_max())
      throw ConfigError(
          "its buffers have more chunks than the immediate has bits for: fewer `collective_bits` or "
          "`generation_bits` leave more");
    left_ = static_cast<std::uint64_t>(config.iterations * config.team.communicators) * ranks_to_end();
  }

  void start(Nanos now) override {
    began_ = now;
    team_.connect();
  }
  bool finished() const override { return finished_; }
  Progress progress() const override { return team_.progress(); }
  std::span<const FlowRecord> flows() const override { return {}; }
  void explain_waiting(Report& report, unsigned lines) const override { team_.explain_waiting(report, lines); }
  void report(Report& report) const override;
  std::size_t collectives() const override { return times_.size(); }
  CollectiveTimes::Times collective(std::size_t number) const override {
    const Times& one = times_[number];
    return {one.first_start, one.ended == ranks_to_end() ? one.last_end : kNever};
  }

 private:
  // A rank's buffer, used by one collective after the other.
  struct Place {
    std::vector<std::uint8_t> bytes;
    Buffer buffer;
  };
  // What ranks in processes of their own have to have alike.
  static std::uint64_t agreed(const WorkloadConfig& config, bool is_broadcast) {
    const std::int64_t numbers[] = {config.chains, config.iterations, config.root, is_broadcast};
    std::vector<std::uint64_t> all = {config.size};
    for (const std::int64_t one : numbers) all.push_back(static_cast<std::uint64_t>(one));
    return config.team.agreement(all);
  }
  unsigned blocks() const { return is_broadcast_ ? 1 : team_.ranks(); }
  bool stopped(unsigned rank) const {
    return config_.team.stop_at != StopAt::kNever && static_cast<unsigned>(config_.team.stop_rank) == rank;
  }
  // Who of its ranks end each collective.
  std::uint64_t ranks_to_end() const { return team_.here().size() - (config_.team.stop_at != StopAt::kNever); }
  bool owns(unsigned rank, unsigned block) const {
    return is_broadcast_ ? rank == static_cast<unsigned>(config_.root) : rank == block;
  }
  Place& place(unsigned rank, const Operation& operation);
  void begin(unsigned rank, unsigned communicator, std::uint32_t sequence, Nanos now);
  void check(unsigned rank, const Operation& operation);
  void on_connected(Nanos now) override;
  void on_unconnected(const std::string& why, Nanos now) override;
  void on_left(Nanos now) override { finish(now); }
  void finish(Nanos now) {
    finished_ = true;
    tell_finished(now);
  }
  void on_released(unsigned rank, const Operation& operation, End end, Nanos now) override;

  const WorkloadConfig config_;
  const bool is_broadcast_;
  Team team_;
  std::map<std::tuple<unsigned, unsigned, unsigned>, Place> places_;  // by rank, communicator, slot
  struct Times {
    Nanos first_start = kNever, last_end = 0;
    std::uint64_t ended = 0;
  };
  std::vector<Times> times_;  // by communicator and sequence
  std::map<End, std::uint64_t> ends_;
  std::string error_;
  bool finished_ = false;
  std::uint64_t left_ = 0, wrong_bytes_ = 0, wrong_blocks_ = 0;
  Nanos began_ = 0, connected_ = 0, ended_ = 0;
};

MulticastWorkload::Place& MulticastWorkload::place(unsigned rank, const Operation& operation) {
  const auto slot = operation.sequence % static_cast<unsigned>(config_.team.outstanding);
  Place& place = places_[{rank, operation.communicator, slot}];
  const std::uint64_t bytes = blocks() * config_.size;
  if (place.buffer.bytes) return place;
  if (team_.has_bytes()) place.bytes.resize(bytes);
  place.buffer = {(std::uint64_t{operation.communicator} * kOutstandingMax + slot + 1) * kBufferStride, bytes,
                  team_.has_bytes() ? place.bytes.data() : nullptr};
  return place;
}

void MulticastWorkload::on_connected(Nanos now) {
  connected_ = now;
  times_.resize(static_cast<std::size_t>(config_.iterations * config_.team.communicators));
  const auto first = std::min(config_.iterations, config_.team.outstanding);
  for (const unsigned rank : team_.here())
    for (unsigned c = 0; c < static_cast<unsigned>(config_.team.communicators); c++)
      for (std::uint32_t sequence = 0; sequence < first; sequence++) begin(rank, c, sequence, now);
}

void MulticastWorkload::on_unconnected(const std::string& why, Nanos now) {
  error_ = why;
  finish(now);
}

void MulticastWorkload::begin(unsigned rank, unsigned communicator, std::uint32_t sequence, Nanos now) {
  Operation operation{communicator, sequence, is_broadcast_ ? static_cast<int>(config_.root) : -1,
                      std::min<unsigned>(static_cast<unsigned>(config_.chains), team_.ranks()), config_.size};
  Place& where = place(rank, operation);
  if (team_.has_bytes()) {
    std::fill(where.bytes.begin(), where.bytes.end(), 0xEE);
    for (unsigned block = 0; block < blocks(); block++)
      if (owns(rank, block))
        for (std::uint64_t i = 0; i < config_.size; i++)
          where.bytes[block * config_.size + i] = given(operation, block, i);
  } else {
    team_.forget_extents(rank, where.buffer);
  }
  Times& times =
      times_[static_cast<std::size_t>(communicator) * static_cast<std::size_t>(config_.iterations) + sequence];
  times.first_start = std::min(times.first_start, now);
  team_.start(rank, operation, where.buffer);
}

void MulticastWorkload::check(unsigned rank, const Operation& operation) {
  Place& where = place(rank, operation);
  for (unsigned block = 0; block < blocks(); block++) {
    if (!team_.has_bytes()) {
      if (!owns(rank, block)) wrong_blocks_ += !team_.covers(rank, where.buffer, block * config_.size, config_.size);
      continue;
    }
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < config_.size; i++)
      wrong += where.bytes[block * config_.size + i] != given(operation, block, i);
    wrong_bytes_ += wrong;
    wrong_blocks_ += wrong > 0;
  }
}

void MulticastWorkload::on_released(unsigned rank, const Operation& operation, End end, Nanos now) {
  ends_[end]++;
  if (stopped(rank)) return;
  if (end == End::kWhole) check(rank, operation);
  Times& times =
      times_[std::size_t{operation.communicator} * static_cast<std::size_t>(config_.iterations) + operation.sequence];
  times.last_end = std::max(times.last_end, now);
  times.ended++;
  ended_ = now;
  const std::uint32_t next = operation.sequence + static_cast<std::uint32_t>(config_.team.outstanding);
  if (next < config_.iterations) begin(rank, operation.communicator, next, now);
  if (--left_ > 0) return;
  if (team_.is_apart()) return team_.leave();
  finish(now);
}

void MulticastWorkload::report(Report& report) const {
  const TeamCounters c = team_.counters();
  const auto count = [&](const char* name, std::uint64_t value) {
    report.count(name, static_cast<std::int64_t>(value));
  };
  count("ranks", team_.ranks());
  if (team_.is_apart()) {
    report.count("rank_number", team_.here().front());
    report.text("error", error_);
    count("goodbyes_missing", c.goodbyes_missing);
  }
  count("released_whole", c.released_whole);
  for (const auto& [end, times] : ends_)
    if (end != End::kWhole) count(std::string(name_of(end)).c_str(), times);
  count("not_released", left_);
  count("wrong_bytes", wrong_bytes_);
  count("wrong_blocks", wrong_blocks_);
  Nanos longest = 0, sum = 0;
  std::uint64_t done = 0;
  for (const Times& one : times_) {
    if (one.ended == 0) continue;
    longest = std::max(longest, one.last_end - one.first_start);
    sum += one.last_end - one.first_start;
    done++;
  }
  if (done > 0) {
    report.duration("completion_time", sum / static_cast<Nanos>(done));
    report.duration("longest_completion_time", longest);
    // What a rank receives in that time.
    const double bytes = static_cast<double>(config_.size) * (is_broadcast_ ? 1 : team_.ranks() - 1);
    if (sum > 0)
      report.real("receive_bits_per_second", bytes * 8e9 * static_cast<double>(done) / static_cast<double>(sum));
  }
  // Figure 10's parts of the critical path: means over ranks and collectives.
  if (const auto whole = static_cast<Nanos>(c.released_whole); whole > 0) {
    report.duration("mean_barrier_time", static_cast<Nanos>(c.barrier_ns) / whole);
    report.duration("mean_data_time", static_cast<Nanos>(c.data_ns) / whole);
    report.duration("mean_handshake_time", static_cast<Nanos>(c.handshake_ns) / whole);
  }
  count("datagrams_sent", c.datagrams_sent);
  count("doorbells", c.doorbells);
  count("send_completions", c.send_completions);
  count("chunks_received", c.chunks);
  count("chunks_duplicate", c.duplicates);
  count("chunks_stale", c.stale);
  count("chunks_out_of_range", c.out_of_range);
  count("chunks_of_other_subgroups", c.other_subgroup);
  count("chunks_of_strangers", c.strangers);
  count("chunks_of_wrong_length", c.wrong_length);
  count("chunks_without_immediate", c.no_immediate);
  count("copies", c.copies);
  count("fetch_requests", c.requests);
  count("fetch_reads", c.reads);
  count("bytes_fetched", c.bytes_read);
  count("control_messages", c.messages);
  count("stale_messages", c.stale_messages);
  count("bad_messages", c.bad_messages);
  count("registration_hits", c.registration_hits);
  report.setting("staging_slots", static_cast<std::int64_t>(c.staging_slots));
}

template <bool kIsBroadcast>
class MulticastOptions final : public WorkloadOptions {
 public:
  void fields(Fields& f) override {
    f.bytes("size", config_.size, {1, kBlockBytesMax},
            kIsBroadcast ? "bytes that the root broadcasts" : "bytes that each rank gives");
    f.integer("iterations", config_.iterations, {1, 1 << 20}, "collectives of each communicator, one after the other");
    if constexpr (kIsBroadcast)
      f.integer("root", config_.root, {0, kRanksMax - 1}, "rank that broadcasts");
    else
      f.integer("chains", config_.chains, {1, kRanksMax},
                "chains of ranks that broadcast one after the other, side by side: M, of which each has P / M ranks");
    config_.team.fields(f);
  }
  Range<std::int64_t> hosts() const override {
    return config_.team.ranks.empty() ? Range<std::int64_t>{2, kRanksMax} : Range<std::int64_t>{1, 1};
  }
  std::uint32_t packets_in_flight() const override { return config_.team.recovery.packets_in_flight(); }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t) const override {
    return std::make_unique<MulticastWorkload>(hosts, config_, kIsBroadcast);
  }

 private:
  WorkloadConfig config_;
};

constexpr Example kAllgatherExamples[] = {
    {"two chains, four subgroups", "size: 64KiB\nchains: 2\nsubgroups: 4\n"},
    {"collectives of two communicators, three of each under way", "communicators: 2\noutstanding: 3\niterations: 9\n"},
    {nullptr, nullptr}};
constexpr Example kBroadcastExamples[] = {{"of 8 MiB", "size: 8MiB\nroot: 0\n"}, {nullptr, nullptr}};

}  // namespace
}  // namespace rocebox::allgather

std::vector<rocebox::Component> rocebox::allgather_workloads() {
  using namespace allgather;
  return {
      workload_component<MulticastOptions<false>>(
          "multicast_allgather", "Allgather of broadcasts by multicast, with a fetch ring for what was lost",
          kAllgatherExamples),
      workload_component<MulticastOptions<true>>(
          "multicast_broadcast", "Broadcast by multicast, with a fetch ring for what was lost", kBroadcastExamples)};
}
