// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/workload/sdr_messages.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/sdr/reliability/reliable_queue_pair.h"
#include "kernels/sdr/workload/config.h"
#include "nic_model/host/workloads/programs.h"
#include "runtime/kernel/carried.h"
#include "runtime/kernel/splitmix64.h"

namespace rocebox::sdr {
namespace {

using nic_model::Host;

// Byte `i` of message `number` is byte `i mod 8` of the word that these give for i / 8.
std::uint64_t word_of(std::uint64_t number, std::uint64_t word) {
  return (number + 1) * 0x9E3779B97F4A7C15u + word * 0xC2B2AE3D27D4EB4Fu;
}

void fill(std::uint8_t* to, std::uint64_t number, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = word_of(number, i / 8);
    std::memcpy(to + i, &word, std::min<std::uint64_t>(8, bytes - i));
  }
}

bool is_right(const std::uint8_t* here, std::uint64_t number, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = word_of(number, i / 8);
    if (std::memcmp(here + i, &word, std::min<std::uint64_t>(8, bytes - i)) != 0) return false;
  }
  return true;
}

class SdrMessages final : public Workload, public Carrier {
 public:
  SdrMessages(std::span<const WorkloadHost> on, const MessagesConfig& config, std::uint64_t seed)
      : config_(config), sizes_(static_cast<std::size_t>(config.messages)) {
    const std::uint64_t span = config.max_size - config.min_size + 1;
    for (std::uint64_t& size : sizes_) size = config.min_size + splitmix64::next(seed) % span;
    for (unsigned i = 0; i < 2; i++) {
      Host& host = nic_model::host_of(on[i], static_cast<std::int64_t>(config.mtu));
      if (host.config().header_only)
        throw ConfigError("`" + on[i].name + "` has `header_only: true`, and every byte is looked at");
      End& end = ends_[i];
      end.backend = std::make_unique<Backend>(host, static_cast<std::uint32_t>(config.channels), 1,
                                              i == 0 ? static_cast<std::uint32_t>(config.dpa_senders) : 0);
      end.memory.resize(static_cast<std::size_t>(config.in_flight) * config.max_size);
      end.transfers.resize(sizes_.size());
    }
    nic_model::require_peers(on[0], on[1], &config.recovery);
  }

  // The two ends tell each other of their queue pairs out of band.
  void start(Nanos) override {
    ends_[0].backend->call([this](Host& host) {
      make(host, 0);
      ends_[1].backend->call([this](Host& other) {
        make(other, 1);
        connect(other, 1);
        post(other, 1);
        ends_[0].backend->call([this](Host& first) {
          connect(first, 0);
          post(first, 0);
        });
      });
    });
  }
  bool finished() const override { return finished_; }
  Progress progress() const override {
    Progress sum{progress_};
    for (const End& end : ends_) sum.add(end.backend->progress());
    return sum;
  }
  std::span<const FlowRecord> flows() const override { return flows_; }
  void explain_waiting(Report& report, unsigned) const override {
    report.count("sent", static_cast<std::int64_t>(ends_[0].over));
    report.count("received", static_cast<std::int64_t>(ends_[1].over));
    report.text("error", error_);
  }
  void report(Report& report) const override;
  Share share_carried() const override {
    return {static_cast<double>(bytes_), std::accumulate(sizes_.begin(), sizes_.end(), 0.0)};
  }

 private:
  struct End {
    std::unique_ptr<Backend> backend;
    QueuePair* qp = nullptr;
    std::unique_ptr<ReliableQueuePair> reliable;
    std::vector<std::uint8_t> memory;
    std::uint32_t key = 0;
    std::vector<Transfer> transfers;
    std::vector<char> done;
    std::size_t posted = 0, first = 0, over = 0;  // first: that is not over
  };
  void make(Host& host, unsigned side);
  void connect(Host& host, unsigned side);
  void post(Host& host, unsigned side);
  void on_over(Host& host, unsigned side, Transfer& transfer);
  std::uint8_t* place(End& end, std::size_t number) {
    return end.memory.data() + number % static_cast<std::size_t>(config_.in_flight) * config_.max_size;
  }
  void end_with(Host& host, const std::string& error) {
    if (error_.empty()) error_ = error;
    if (!std::exchange(finished_, true)) tell_finished(host.now());
  }

  const MessagesConfig config_;
  std::vector<std::uint64_t> sizes_;
  End ends_[2];  // who sends, who receives
  std::vector<FlowRecord> flows_;
  std::uint64_t progress_ = 0, failed_ = 0, failed_receives_ = 0, mismatches_ = 0, lost_chunks_ = 0, bytes_ = 0;
  std::string error_;
  bool finished_ = false;
};

void SdrMessages::make(Host& host, unsigned side) {
  End& end = ends_[side];
  std::string error;
  end.qp = end.backend->create(host, config_.queue_pair(), error);
  if (!end.qp) return end_with(host, error);
  end.key = end.backend->add_memory(end.memory.data(), end.memory.size(), true);
  end.done.resize(sizes_.size());
  const auto over = [this, side](Host& h, Transfer& transfer) { on_over(h, side, transfer); };
  end.reliable = std::make_unique<ReliableQueuePair>(*end.qp, config_.reliable(host.config().rate), over, over);
}

void SdrMessages::connect(Host& host, unsigned side) {
  if (!ends_[0].qp || !ends_[1].qp) return;
  const std::optional<QueuePairInfo> peer = QueuePairInfo::decode(ends_[1 - side].qp->info().encode());
  const std::string error = peer ? ends_[side].qp->connect(host, *peer) : "the peer's info cannot be read";
  if (!error.empty()) end_with(host, error);
}

void SdrMessages::post(Host& host, unsigned side) {
  End& end = ends_[side];
  const auto in_flight = static_cast<std::size_t>(config_.in_flight);
  while (!finished_ && end.posted < sizes_.size() && end.posted < end.first + in_flight) {
    const std::size_t number = end.posted++;
    Transfer& transfer = end.transfers[number];
    transfer.address = reinterpret_cast<std::uintptr_t>(place(end, number));
    transfer.length = sizes_[number];
    transfer.key = end.key;
    if (side == 0) {
      fill(place(end, number), number, transfer.length);
      flows_.push_back({0, 1, transfer.length, host.now(), kNever});
      end.reliable->sender.send(host, transfer);
    } else {
      std::memset(place(end, number), 0, transfer.length);
      end.reliable->receiver.receive(host, transfer);
    }
  }
}

void SdrMessages::on_over(Host& host, unsigned side, Transfer& transfer) {
  End& end = ends_[side];
  const auto number = static_cast<std::size_t>(&transfer - end.transfers.data());
  progress_++;
  end.over++;
  end.done[number] = 1;
  if (!transfer.error.empty()) {
    failed_++;
    failed_receives_ += side;
    if (error_.empty()) error_ = transfer.error;
  }
  if (side == 1) {
    if (number < flows_.size()) flows_[number].end = host.now();
    lost_chunks_ += transfer.lost;
    bytes_ += transfer.length;
    if (transfer.error.empty() && transfer.lost == 0 && !is_right(place(end, number), number, transfer.length))
      mismatches_++;
  }
  while (end.first < end.posted && end.done[end.first]) end.first++;
  post(host, side);
  if (ends_[0].over == sizes_.size() && ends_[1].over == sizes_.size()) end_with(host, "");
}

void SdrMessages::report(Report& report) const {
  const auto count = [&](const char* name, std::uint64_t value) {
    report.count(name, static_cast<std::int64_t>(value));
  };
  count("sent", ends_[0].over);
  count("received", ends_[1].over);
  count("bytes", bytes_);
  count("failed", failed_);
  count("failed_receives", failed_receives_);
  count("mismatches", mismatches_);
  count("lost_chunks", lost_chunks_);
  // Between the injection of a message's first chunk and its last ACK (4.2.1).
  std::vector<Time> times;
  for (const Transfer& one : ends_[0].transfers)
    if (one.over && one.error.empty()) times.push_back(one.ended - one.started);
  std::ranges::sort(times);
  const auto sum = std::accumulate(times.begin(), times.end(), 0.0);
  report.duration("mean_completion", times.empty() ? 0 : static_cast<Time>(sum / static_cast<double>(times.size())));
  report.duration("p999_completion", times.empty() ? 0 : times[(times.size() * 999 + 999) / 1000 - 1]);
  // Expectations want each name from the beginning on.
  const ReliableSender* sender = ends_[0].reliable ? &ends_[0].reliable->sender : nullptr;
  const ReliableReceiver* receiver = ends_[1].reliable ? &ends_[1].reliable->receiver : nullptr;
  count("repetitions", sender ? sender->repetitions() : 0);
  count("fallbacks", sender ? sender->fallbacks() : 0);
  count("probes", sender ? sender->probes() : 0);
  count("recovered_chunks", receiver ? receiver->recovered() : 0);
  count("nacks", receiver ? receiver->nacks() : 0);
  constexpr const char* kArrivals[] = {"packets",    "chunks",          "messages",        "fragments",
                                       "duplicates", "late_generation", "late_no_message", "out_of_bounds"};
  for (unsigned i = 0; i < SDR_ARRIVALS; i++) count(kArrivals[i], ends_[1].qp ? ends_[1].qp->arrivals()[i] : 0);
  const Backend::Sent sent = ends_[0].backend->sent();
  count("dpa_batches", sent.batches);
  count("dpa_packets", sent.packets);
  count("device_bytes", ends_[1].qp ? ends_[1].qp->device_bytes() : 0);
  report.text("error", error_);
}

class MessagesOptions final : public WorkloadOptions {
 public:
  void fields(Fields& fields) override { config_.fields(fields); }
  Range<std::int64_t> hosts() const override { return {2, 2}; }
  std::uint32_t packets_in_flight() const override { return config_.recovery.packets_in_flight(); }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t seed) const override {
    return std::make_unique<SdrMessages>(hosts, config_, seed);
  }

 private:
  MessagesConfig config_;
};

constexpr Example kMessagesExamples[] = {
    {"messages over a long line, with Selective Repeat", "messages: 1000\nrtt: 25ms\n"},
    {"the same with an erasure code", "messages: 1000\nreliability: erasure_coding\ndata: 32\nparity: 8\n"},
    {nullptr, nullptr}};

}  // namespace
}  // namespace rocebox::sdr

rocebox::Component rocebox::sdr_messages_workload() {
  return workload_component<sdr::MessagesOptions>(
      "sdr_messages", "messages of random sizes from the first host to the second over SDR, every byte looked at",
      sdr::kMessagesExamples);
}
