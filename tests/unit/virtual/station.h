// SPDX-License-Identifier: BSD-3-Clause
// A device with a host, and a workload over such hosts.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/kernel/kernel_options.h"
#include "runtime/kernel/rate_queue.h"
#include "runtime/kernel/workload.h"
#include "runtime/roce/build.h"
#include "runtime/roce/parse.h"

namespace rocebox::sim_test {

inline constexpr std::uint32_t kPayload = 1024;

/// What a workload posts to: messages go out as packets of kPayload bytes, their number is the QPN.
class StationHost : public HostSide {
 public:
  struct Message {
    unsigned number;
    const StationHost* to;
    std::uint64_t bytes;
  };
  bool has_posted() const override { return !posted.empty(); }
  void set_waker(std::function<void()> waker) override { waker_ = std::move(waker); }
  void post(Message message) {
    posted.push_back(message);
    if (posted.size() == 1 && waker_) waker_();
  }

  std::deque<Message> posted;
  std::function<void(unsigned number, std::uint64_t bytes, Nanos now)> on_received;
  roce::Mac mac{};
  roce::IpAddress address{};

 protected:
  ~StationHost() = default;

 private:
  std::function<void()> waker_;
};

struct StationConfig {
  std::optional<roce::Mac> mac = roce::Mac{2, 0, 0, 0, 0, 1}, router;
  std::optional<roce::IpAddress> address = roce::ipv4(10, 0, 0, 1);
  std::uint64_t rate = 1'000'000'000;
  bool mute = false, keeps = false;
};

class Station final : public Kernel, private StationHost {
 public:
  Station(const StationConfig& config, Stats& stats)
      : config_(config), queue_(config.rate), dropped_(stats.counter("mute", "packets that were not sent")) {
    mac = *config.mac;
    address = *config.address;
  }
  HostSide* host_side() override { return this; }
  void on_host(Context& context) override {
    for (; !posted.empty(); posted.pop_front()) waiting_.push_back(posted.front());
    if (!timer_.armed()) send(context);
  }
  // The last bit of a packet has been sent.
  void on_timer(Context& context, Timer&) override {
    if (config_.keeps) return;
    config_.mute ? context.drop(std::move(leaving_), dropped_) : context.emit(std::move(leaving_), 0);
    send(context);
  }
  void process(Context& context, Port, Batch& batch) override {
    for (unsigned i = 0; i < batch.size(); i++) {
      if (!roce::is_roce(batch[i])) {  // a pause, which stations do not know
        batch.drop(i, received_);
        continue;
      }
      const roce::Bth& bth = roce::bth(batch[i]);
      if (on_received)
        on_received(static_cast<std::uint32_t>(bth.destination_qp), batch[i].meta().payload_bytes, context.now());
      batch.drop(i, received_);
    }
  }

 private:
  void send(Context& context) {
    if (waiting_.empty()) return;
    Message& message = waiting_.front();
    const std::uint64_t bytes = std::min<std::uint64_t>(kPayload, message.bytes);
    static const std::vector<std::uint8_t> zeros(kPayload);
    roce::PacketSpec spec;
    spec.underlay.source_mac = mac;
    const bool to_group = message.to->mac[0] & 1;
    spec.underlay.destination_mac = to_group ? message.to->mac : config_.router.value_or(message.to->mac);
    spec.underlay.addresses = {address, message.to->address};
    spec.underlay.tos = to_group ? 2 : 0;  // ECT(0)
    spec.destination_qp = message.number;
    spec.payload = {zeros.data(), bytes};
    PacketPtr packet = context.allocate(roce::built_bytes(spec));
    if (!packet) return;  // nobody gives so small a pool
    roce::build(*packet, spec);
    queue_.accept(queue_.after(context.now(), packet->wire_bytes() + 24));
    context.arm(timer_, queue_.after(context.now(), 0).rounded_up());
    leaving_ = std::move(packet);
    message.bytes -= bytes;
    if (message.bytes == 0) waiting_.pop_front();
  }

  StationConfig config_;
  RateQueue queue_;
  std::deque<Message> waiting_;
  PacketPtr leaving_;
  Timer timer_;
  Counter& dropped_;
  Counter received_;
};

class StationOptions final : public DeviceOptions {
 public:
  void fields(Fields& f) override {
    f.mac("mac", config_.mac, Presence::kRequired, "its own");
    f.mac("router", config_.router, Presence::kOptional, "next hop");
    f.address("address", config_.address, Presence::kRequired, "its own");
    f.rate("rate", config_.rate, {kRateMin, kRateMax}, "at which it sends");
    f.boolean("mute", config_.mute, "sends nothing");
    f.boolean("keeps", config_.keeps, "sends nothing, and holds its first packet for ever");
  }
  const std::vector<std::string>& ports() const override { return ports_; }
  std::unique_ptr<Kernel> make(Stats& stats) const override { return std::make_unique<Station>(config_, stats); }
  std::unique_ptr<Change> change(const Kernel&) const override { throw ConfigError("fixed"); }
  void place(const Placement& placement) override {
    config_.mac = placement.mac;
    config_.address = placement.address;
    config_.rate = placement.ports[0].bits_per_second;
    config_.router = placement.ports[0].neighbor_mac;
  }

 private:
  StationConfig config_;
  std::vector<std::string> ports_ = {"wire"};
};

/// Each host sends `bytes` to the one behind it, `times` after each other.
struct ShoutConfig {
  std::uint64_t bytes = 4096;
  std::int64_t times = 1;
};

class Shout final : public Workload {
 public:
  Shout(const ShoutConfig& config, std::span<const WorkloadHost> hosts) : config_(config) {
    static unsigned next = 1;  // messages of all shouts have numbers of their own
    first_ = next;
    next = (next + 100'000) % 0xF00000 + 1;
    for (const WorkloadHost& host : hosts) {
      auto* station = dynamic_cast<StationHost*>(host.side);
      if (!station) throw ConfigError("device `" + host.name + "` is no station");
      hosts_.push_back(station);
    }
  }
  void start(Nanos now) override {
    for (unsigned i = 0; i < hosts_.size(); i++) {
      auto before = hosts_[i]->on_received;
      hosts_[i]->on_received = [this, before](unsigned number, std::uint64_t bytes, Nanos at) {
        if (number - first_ < flows_.size()) return receive(number - first_, bytes, at);
        if (before) before(number, bytes, at);
      };
    }
    for (unsigned i = 0; i < hosts_.size(); i++) begin(i, now);
  }
  bool finished() const override { return done_ == static_cast<std::size_t>(config_.times) * hosts_.size(); }
  Progress progress() const override { return {received_}; }
  std::span<const FlowRecord> flows() const override { return flows_; }
  void explain_waiting(Report& report, unsigned lines) const override {
    for (const FlowRecord& flow : flows_)
      if (flow.end == kNever && lines-- > 0) report.text("flow from " + std::to_string(flow.source), "waits");
  }
  void report(Report& report) const override { report.count("received", static_cast<std::int64_t>(received_)); }

 private:
  void begin(unsigned source, Nanos now) {
    const auto to = static_cast<unsigned>((source + 1) % hosts_.size());
    left_.push_back(config_.bytes);
    flows_.push_back({source, to, config_.bytes, now, kNever});
    hosts_[source]->post({first_ + static_cast<unsigned>(flows_.size()) - 1, hosts_[to], config_.bytes});
  }
  void receive(std::size_t flow, std::uint64_t bytes, Nanos now) {
    received_ += bytes;
    left_[flow] -= bytes;
    if (left_[flow] > 0) return;
    flows_[flow].end = now;
    done_++;
    if (flows_.size() < static_cast<std::size_t>(config_.times) * hosts_.size()) begin(flows_[flow].source, now);
    if (finished()) tell_finished(now);
  }

  ShoutConfig config_;
  unsigned first_;
  std::vector<StationHost*> hosts_;
  std::vector<FlowRecord> flows_;
  std::vector<std::uint64_t> left_;
  std::size_t done_ = 0;
  std::uint64_t received_ = 0;
};

class ShoutOptions final : public WorkloadOptions {
 public:
  void fields(Fields& f) override {
    f.bytes("bytes", config_.bytes, {1, 1 << 30}, "of a message");
    f.integer("times", config_.times, {1, 50'000}, "messages of each host");
  }
  Range<std::int64_t> hosts() const override { return {2, INT64_MAX}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t) const override {
    return std::make_unique<Shout>(config_, hosts);
  }

 private:
  ShoutConfig config_;
};

}  // namespace rocebox::sim_test
