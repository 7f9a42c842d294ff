// SPDX-License-Identifier: BSD-3-Clause
// ask: a workload of two hosts behind NICs: a program on the first asks, one on the second answers, and the next
// question goes out when the answer has come. RC SENDs.
// Example: `workloads: {questions: {type: ask, hosts: [h0, h1], count: 1000, size: 4KiB}}`.
#include <algorithm>
#include <memory>
#include <vector>

#include "nic_model/host/connect.h"
#include "nic_model/host/workloads/programs.h"

using namespace rocebox;
using namespace rocebox::nic_model;

namespace {

struct Config {
  std::int64_t count = 100;
  std::uint64_t size = 4096;
  void fields(Fields& f) {
    f.integer("count", count, {1, 1'000'000}, "questions");
    f.bytes("size", size, {1, 1 << 30}, "bytes of a question, and of its answer");
  }
};

class Ask final : public Workload {
 public:
  Ask(std::span<const WorkloadHost> hosts, const Config& config)
      : config_(config), ends_{End(*this, hosts[0], 0), End(*this, hosts[1], 1)} {}

  void start(Nanos now) override {
    flows_.push_back({0, 1, config_.size, now, kNever});
    for (End& end : ends_) end.start();
  }
  bool finished() const override { return answers_ == config_.count || failed_; }
  // Each question and answer is a step; what the NICs wait for in between, they know.
  Progress progress() const override {
    Progress sum;
    for (const End& end : ends_) sum.add(end.progress());
    sum.add(static_cast<std::uint64_t>(answers_), 0);
    return sum;
  }
  std::span<const FlowRecord> flows() const override { return flows_; }
  void explain_waiting(Report& report, unsigned) const override { report.count("answers", answers_); }
  void report(Report& report) const override {
    report.count("answers", answers_);
    report.text("error", failed_ ? "a work request failed" : "");
    report_times(report, times_);
  }

 private:
  // The program of one host. Its NIC calls it; it touches the other one only by start(), which asks for a call there.
  class End final : public HostProgram {
   public:
    End(Ask& ask, const WorkloadHost& on, unsigned side) : ask_(ask), host_(host_of(on, 1024)), side_(side) {
      program_ = host_.submit(*this);
    }
    End(End&&) = delete;
    void start() {
      starts_ = true;
      host_.start_again(program_);
    }
    Progress progress() const { return host_.progress(program_); }
    roce::IpAddress address() const { return host_.config().address.value_or(roce::IpAddress{}); }

    // Twice: memory and a queue pair, and once both have one, the connection.
    void on_start(Host& host) override {
      if (!std::exchange(starts_, false)) return;  // when the device begins, which may be long before the workload
      if (!qp_) return make(host);
      const End& peer = ask_.ends_[1 - side_];
      const Peer there = {peer.address(), peer.qp_->number(), 0};
      if (::rocebox::nic_model::connect(host, *qp_, there, {}) != 0) return ask_.fail(host.now());
      receive(host);
      if (side_ == 0) send(host);
    }
    void on_completion(Host& host, CompletionQueue& cq) override {
      complete_all(host, cq, [&](const ibv_wc& wc) {
        if (wc.status != IBV_WC_SUCCESS) return ask_.fail(host.now());
        if (wc.opcode != IBV_WC_RECV) return;
        receive(host);
        if (side_ == 1 || ask_.on_answer(host.now() - sent_, host.now())) send(host);
      });
    }

   private:
    void make(Host& host) {
      memory_.resize(ask_.config_.size);
      QpInit init;
      init.domain = host.alloc_pd();
      key_ = host.memory().add(init.domain, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
      init.send_cq = init.receive_cq = host.create_cq(16, program_);
      init.capacity = {4, 4, 1, 1, 0};
      host.arm(*init.send_cq);
      qp_ = host.create_qp(init);
      if (!qp_ || !key_) return ask_.fail(host.now());
      if (ask_.ends_[1 - side_].qp_)
        for (End& end : ask_.ends_) end.start();
    }
    ibv_sge piece() {
      return {reinterpret_cast<std::uintptr_t>(memory_.data()), static_cast<std::uint32_t>(memory_.size()), key_};
    }
    void receive(Host& host) {
      ibv_sge sge = piece();
      ibv_recv_wr request{0, nullptr, &sge, 1};
      host.post_receive(*qp_, &request, nullptr);
    }
    void send(Host& host) {
      ibv_sge sge = piece();
      ibv_send_wr request{};
      request.opcode = IBV_WR_SEND;
      request.send_flags = IBV_SEND_SIGNALED;
      request.sg_list = &sge;
      request.num_sge = 1;
      sent_ = host.now();
      if (host.post_send(*qp_, &request, nullptr) != 0) ask_.fail(sent_);
    }

    Ask& ask_;
    Host& host_;
    const unsigned side_;
    std::uint32_t program_ = 0, key_ = 0;
    std::vector<std::uint8_t> memory_;
    Qp* qp_ = nullptr;
    Nanos sent_ = 0;
    bool starts_ = false;
  };

  // Whether there is to be another question.
  bool on_answer(Nanos took, Nanos now) {
    times_.push_back(took);
    flows_.back().end = now;
    if (++answers_ == config_.count) return tell_finished(now), false;
    flows_.push_back({0, 1, config_.size, now, kNever});
    return true;
  }
  void fail(Nanos now) {
    if (!finished()) failed_ = true, tell_finished(now);
  }

  const Config config_;
  std::int64_t answers_ = 0;
  bool failed_ = false;
  std::vector<Nanos> times_;
  std::vector<FlowRecord> flows_;
  End ends_[2];
};

class AskOptions final : public WorkloadOptions {
 public:
  void fields(Fields& fields) override { config_.fields(fields); }
  Range<std::int64_t> hosts() const override { return {2, 2}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t) const override {
    return std::make_unique<Ask>(hosts, config_);
  }

 private:
  Config config_;
};

}  // namespace

extern "C" const Component* rocebox_components() {
  static const Component components[] = {
      workload_component<AskOptions>("ask", "questions and answers between two hosts, one at a time"), {}};
  return components;
}
