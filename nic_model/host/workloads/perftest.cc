// SPDX-License-Identifier: BSD-3-Clause
// Workloads by the names and options of perftest: one host is the client, the other one the server.
#include "nic_model/host/workloads/perftest.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "nic_model/host/connect.h"
#include "nic_model/host/workloads/perftest_config.h"
#include "nic_model/host/workloads/programs.h"
#include "nic_model/host/workloads/remote_write.h"
#include "runtime/kernel/rate_queue.h"

namespace rocebox::nic_model {
namespace {

// One end of all queue pairs.
class End final : public HostProgram {
 public:
  End(const WorkloadHost& on, const PerftestConfig& config, const std::vector<std::uint64_t>& sizes)
      : config_(config), sizes_(sizes) {
    host_ = &host_of(on, config.mtu);
    program_ = host_->submit(*this);
  }
  void run(std::function<void(Host&)> what) { tasks_.add(*host_, program_, std::move(what)); }
  void on_start(Host& host) override { tasks_.run(host); }
  void on_completion(Host& host, CompletionQueue& cq) override {
    complete_all(host, cq, [&](const ibv_wc& wc) { on_wc(host, wc); });
  }
  void on_timer(Host& host, Timer&) override { on_time(host); }

  void prepare(Host& host) {
    domain_ = host.alloc_pd();
    if (host.config().header_only) {
      mapping_.key = host.memory().add_without_bytes(domain_, 0, config_.largest(), ConnectOptions().access);
    } else {
      bytes_.resize(config_.largest());
      mapping_ = host.memory().map(domain_, bytes_.data(), bytes_.size(), ConnectOptions().access);
    }
    const auto depth = static_cast<std::uint32_t>(config_.tx_depth);
    cq_ = host.create_cq(static_cast<std::uint32_t>(config_.cq_entries()), program_);
    for (std::int64_t i = 0; i < config_.qp; i++) {
      QpInit init;
      init.type = config_.connection == 0 ? IBV_QPT_RC : IBV_QPT_UC;
      init.domain = domain_;
      init.send_cq = init.receive_cq = cq_;
      init.capacity = {depth, 2 * depth, 1, 1, static_cast<std::uint32_t>(config_.inline_size)};
      Qp* qp = host.create_qp(init);
      if (!qp) throw std::runtime_error("a NIC has too few queue pairs for its workloads: give it more `queue_pairs:`");
      qps.push_back({qp});
    }
    host.arm(*cq_);
  }
  void connect(Host& host, const End& other) {
    ConnectOptions options;
    options.mtu = static_cast<std::uint32_t>(config_.mtu);
    options.timeout = static_cast<std::uint8_t>(config_.timeout);
    for (std::size_t i = 0; i < qps.size(); i++)
      nic_model::connect(host, *qps[i].qp,
                         {other.host_->config().source_for(*host.config().address), other.qps[i].qp->number()},
                         options);
  }
  void post_receive(Host& host, std::size_t number) {
    ibv_sge sge{address(), static_cast<std::uint32_t>(sizes_[number]), mapping_.key};
    ibv_recv_wr request{number, nullptr, &sge, 1};
    host.post_receive(*qps[number].qp, &request, nullptr);
  }
  int post_send(Host& host, std::size_t number, ibv_wr_opcode opcode, const End& other, bool signaled,
                std::uint32_t immediate = 0) {
    ibv_sge sge{address(), static_cast<std::uint32_t>(sizes_[number]), mapping_.key};
    ibv_send_wr request{};
    request.wr_id = number;
    request.opcode = opcode;
    request.sg_list = &sge;
    request.num_sge = 1;
    const bool inlined =
        sizes_[number] <= static_cast<std::uint64_t>(config_.inline_size) && !host.config().header_only;
    if (inlined) sge.addr = reinterpret_cast<std::uintptr_t>(bytes_.data());  // that the host copies, not the NIC
    request.send_flags = (signaled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0u) |
                         (inlined ? static_cast<unsigned>(IBV_SEND_INLINE) : 0u);
    request.imm_data = htobe32(immediate);
    request.wr.rdma.remote_addr = other.address();
    request.wr.rdma.rkey = other.mapping_.key;
    return host.post_send(*qps[number].qp, &request, nullptr);
  }
  Progress progress() const { return host_->progress(program_); }
  std::uint64_t address() const { return mapping_.address; }
  void arm(Host& host, Nanos at) { host.arm_timer(program_, timer_, at); }

  struct Pair {
    Qp* qp;
    std::int64_t posted = 0, completed = 0, in_duration = 0;  // the last: completed until posting ended
    Nanos next_post = 0;
    bool done = false;
  };
  std::vector<Pair> qps;
  std::function<void(Host&, const ibv_wc&)> on_wc;
  std::function<void(Host&)> on_time;

 private:
  const PerftestConfig& config_;
  const std::vector<std::uint64_t>& sizes_;  // of each queue pair
  Host* host_;
  std::uint32_t program_ = 0, domain_ = 0;
  Mapping mapping_;
  CompletionQueue* cq_ = nullptr;
  std::vector<std::uint8_t> bytes_;
  HostTasks tasks_;
  Timer timer_;
};

class Perftest : public Workload {
 public:
  Perftest(std::span<const WorkloadHost> hosts, const PerftestConfig& config, Verb verb, std::uint64_t seed)
      : config_(config),
        sizes_(config.sizes(seed)),
        verb_(verb),
        ends_{End(hosts[0], config_, sizes_), End(hosts[1], config_, sizes_)} {
    for (unsigned side = 0; side < 2; side++) {
      ends_[side].on_wc = [this, side](Host& host, const ibv_wc& wc) {
        if (wc.status != IBV_WC_SUCCESS)
          failed_++;
        else
          on_completion(host, side, wc);
      };
      ends_[side].on_time = [this, side](Host& host) { on_time(host, side); };
    }
  }
  // Both know of each other as by perftest's own connection; then the client begins, and with it the server.
  void start(Nanos now) override {
    start_ = flow_.start = now;
    ends_[0].run([this](Host& client) {
      ends_[0].prepare(client);
      ends_[1].run([this](Host& server) {
        ends_[1].prepare(server);
        ends_[1].connect(server, ends_[0]);
        begin(server, 1);
        ends_[0].run([this](Host& again) {
          ends_[0].connect(again, ends_[1]);
          begin(again, 0);
        });
      });
    });
  }
  bool finished() const override { return finished_; }
  std::span<const FlowRecord> flows() const override { return {&flow_, 1}; }
  Progress progress() const override {
    Progress sum{flow_.bytes};
    for (const End& end : ends_) sum.add(end.progress());
    return sum;
  }
  void explain_waiting(Report& report, unsigned) const override { report.count("failed_completions", failed_); }

 protected:
  virtual void begin(Host& host, unsigned side) = 0;
  virtual void on_completion(Host& host, unsigned side, const ibv_wc& wc) = 0;
  virtual void on_time(Host&, unsigned) {}
  void end(Nanos now) {
    if (finished_) return;
    finished_ = true;
    flow_.end = ended_ = now;
    tell_finished(now);
  }

  const PerftestConfig config_;
  const std::vector<std::uint64_t> sizes_;
  const Verb verb_;
  std::array<End, 2> ends_;
  FlowRecord flow_{0, 1, 0, 0, kNever};
  Nanos start_ = 0, ended_ = 0;
  std::int64_t failed_ = 0;
  bool finished_ = false;
};

class Bandwidth final : public Perftest {
 public:
  using Perftest::Perftest;
  void report(Report& report) const override {
    const double seconds = static_cast<double>(ended_ - start_) / 1e9;
    report.count("messages", messages_);
    report.count("failed_completions", failed_);
    if (config_.duration) report_window(report);
    if (!finished_ || seconds <= 0) return;
    report.duration("completion_time", ended_ - start_);
    report.real("average_bits_per_second", static_cast<double>(flow_.bytes) * 8 / seconds);
    report.real("messages_per_second", static_cast<double>(messages_) / seconds);
  }

 private:
  // Of workloads that begin together this is of one window, whatever each has still to end behind it.
  void report_window(Report& report) const {
    std::uint64_t all = 0;
    for (const End& end : ends_)
      for (std::size_t i = 0; i < sizes_.size(); i++) all += in_duration(end, i);
    report.real("in_duration_bits_per_second", rate(all));
    if (config_.size_max)
      report.table("queue_pairs", sizes_.size(), [&](Report& r, std::size_t i) {
        r.count("number", static_cast<std::int64_t>(i));
        r.count("bytes_of_a_message", static_cast<std::int64_t>(sizes_[i]));
        r.real("in_duration_bits_per_second", rate(in_duration(ends_[0], i)));
      });
  }
  std::uint64_t in_duration(const End& end, std::size_t number) const {
    return static_cast<std::uint64_t>(end.qps.empty() ? 0 : end.qps[number].in_duration) * sizes_[number];
  }
  double rate(std::uint64_t bytes) const {
    return static_cast<double>(bytes) * 8e9 / static_cast<double>(config_.duration);
  }
  bool sends(unsigned side) const { return side == 0 || config_.bidirectional; }
  bool more(const End::Pair& pair, Nanos now) const {
    return config_.duration ? now - start_ < config_.duration : pair.posted < config_.iters;
  }
  void begin(Host& host, unsigned side) override {
    if (verb_ == Verb::kSend)
      for (std::size_t i = 0; i < ends_[side].qps.size(); i++)
        for (std::int64_t n = 0; n < 2 * config_.tx_depth; n++) ends_[side].post_receive(host, i);
    if (!sends(side)) return;
    sending_ += config_.qp;
    for (std::size_t i = 0; i < ends_[side].qps.size(); i++) fill(host, side, i);
  }
  void fill(Host& host, unsigned side, std::size_t number) {
    End::Pair& pair = ends_[side].qps[number];
    constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};
    while (pair.posted - pair.completed < config_.tx_depth && more(pair, host.now())) {
      if (config_.rate_limit && pair.next_post > host.now()) return ends_[side].arm(host, pair.next_post);
      const bool last = !config_.duration && pair.posted + 1 == config_.iters;
      const bool signaled = last || (pair.posted + 1) % config_.cq_mod == 0;
      if (ends_[side].post_send(host, number, kOpcodes[static_cast<unsigned>(verb_)], ends_[1 - side], signaled))
        return;
      pair.posted++;
      if (config_.rate_limit)
        pair.next_post =
            std::max(pair.next_post, host.now()) +
            static_cast<Nanos>(static_cast<double>(sizes_[number]) * 8e9 / static_cast<double>(config_.rate_limit));
    }
  }
  void on_time(Host& host, unsigned side) override {
    for (std::size_t i = 0; i < ends_[side].qps.size(); i++) {
      fill(host, side, i);
      look_whether_done(host, ends_[side].qps[i]);
    }
  }
  void on_completion(Host& host, unsigned side, const ibv_wc& wc) override {
    if (wc.opcode & IBV_WC_RECV) return ends_[side].post_receive(host, wc.wr_id);
    End::Pair& pair = ends_[side].qps[wc.wr_id];
    const std::int64_t before = pair.completed;
    pair.completed = std::min(pair.posted, (pair.completed / config_.cq_mod + 1) * config_.cq_mod);
    messages_ += pair.completed - before;
    if (host.now() - start_ <= config_.duration) pair.in_duration = pair.completed;
    flow_.bytes += static_cast<std::uint64_t>(pair.completed - before) * sizes_[wc.wr_id];
    fill(host, side, wc.wr_id);
    look_whether_done(host, pair);
  }
  // The last of `iters` messages is signaled; of what a `duration` cuts off the last ones are known to be posted only.
  void look_whether_done(Host& host, End::Pair& pair) {
    const std::int64_t silent = config_.duration ? config_.cq_mod - 1 : 0;
    if (pair.done || more(pair, host.now()) || pair.posted - pair.completed > silent) return;
    pair.done = true;
    if (--sending_ == 0) end(host.now());
  }

  std::int64_t messages_ = 0, sending_ = 0;
};

// One message there, one back; a READ is both.
class Latency final : public Perftest {
 public:
  using Perftest::Perftest;
  void report(Report& report) const override {
    report.count("messages", static_cast<std::int64_t>(times_.size()));
    report.count("failed_completions", failed_);
    report_times(report, times_);
  }

 private:
  void begin(Host& host, unsigned side) override {
    for (unsigned i = 0; i < 4 && verb_ != Verb::kRead; i++) ends_[side].post_receive(host, 0);
    if (side == 0) ping(host);
  }
  void ping(Host& host) {
    sent_ = host.now();
    post(host, 0);
  }
  // A WRITE tells its receiver its number, for which perftest polls, by an immediate: there may be no bytes to poll.
  void post(Host& host, unsigned side) {
    constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_SEND};
    if (posted_[side] == config_.iters) return;
    posted_[side]++;
    ends_[side].post_send(host, 0, kOpcodes[static_cast<unsigned>(verb_)], ends_[1 - side], true,
                          static_cast<std::uint32_t>(posted_[side]));
  }
  // A message that the network doubles has one response. The server's bears the number of the client's.
  bool awaited(unsigned side, const ibv_wc& wc) const {
    return verb_ != Verb::kWrite || be32toh(wc.imm_data) == static_cast<std::uint32_t>(posted_[side] + side);
  }
  void on_completion(Host& host, unsigned side, const ibv_wc& wc) override {
    const bool received = wc.opcode & IBV_WC_RECV;
    if (received) ends_[side].post_receive(host, 0);
    if (received ? !awaited(side, wc) : verb_ != Verb::kRead) return;
    if (side == 1) return post(host, 1);
    if (static_cast<std::int64_t>(times_.size()) == config_.iters) return;
    times_.push_back((host.now() - sent_) / (verb_ == Verb::kRead ? 1 : 2));
    flow_.bytes += config_.size;
    if (static_cast<std::int64_t>(times_.size()) == config_.iters) return end(host.now());
    ping(host);
  }

  std::vector<Nanos> times_;
  std::array<std::int64_t, 2> posted_{};  // messages of each side
  Nanos sent_ = 0;
};

template <Verb kVerb, bool kLatency>
class PerftestOptions final : public WorkloadOptions {
 public:
  PerftestOptions() {
    if (kLatency) config_.size = 2, config_.tx_depth = 4;
  }
  void fields(Fields& f) override { config_.fields(f, kVerb, kLatency); }
  Range<std::int64_t> hosts() const override { return {kVerb == Verb::kWrite ? 1 : 2, 2}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t seed) const override {
    if (hosts.size() == 1 && config_.size_max) throw ConfigError("`size_max` is for a workload with two hosts");
    if (hosts.size() == 1) return remote_write(hosts[0], config_, kLatency);
    if (config_.address)
      throw ConfigError("`address` is for a workload with one host, a client, and `" + hosts[1].name +
                        "` is a second one");
    if constexpr (kLatency) return std::make_unique<Latency>(hosts, config_, kVerb, seed);
    return std::make_unique<Bandwidth>(hosts, config_, kVerb, seed);
  }

 private:
  PerftestConfig config_;
};

}  // namespace

std::vector<Component> perftest_workloads() {
  return {
      workload_component<PerftestOptions<Verb::kWrite, false>>("write_bw", "WRITEs as fast as they go, as ib_write_bw"),
      workload_component<PerftestOptions<Verb::kRead, false>>("read_bw", "READs as fast as they go, as ib_read_bw"),
      workload_component<PerftestOptions<Verb::kSend, false>>("send_bw", "SENDs as fast as they go, as ib_send_bw"),
      workload_component<PerftestOptions<Verb::kWrite, true>>("write_lat", "WRITEs there and back, as ib_write_lat"),
      workload_component<PerftestOptions<Verb::kRead, true>>("read_lat", "READs one by one, as ib_read_lat"),
      workload_component<PerftestOptions<Verb::kSend, true>>("send_lat", "SENDs there and back, as ib_send_lat")};
}

}  // namespace rocebox::nic_model
