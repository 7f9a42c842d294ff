// SPDX-License-Identifier: BSD-3-Clause
// messages: a workload of the swarm's own. Each host sends the next one WRITEs, SENDs, READs and atomics of random
// lengths, with real bytes, and all that arrives is compared.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "nic_model/host/connect.h"
#include "nic_model/host/workloads/programs.h"
#include "runtime/kernel/splitmix64.h"
#include "runtime/kernel/workload.h"
#include "tests/swarm/fabric.h"

namespace rocebox::swarm {
namespace {

using nic_model::CompletionQueue;
using nic_model::Host;
using nic_model::Qp;

constexpr std::uint8_t kUntouched = 0xEE;
constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
                                      IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ,           IBV_WR_ATOMIC_FETCH_AND_ADD};

struct MessagesConfig {
  std::int64_t count = 16, mtu = 1024, retry_cnt = 7, timeout = 14;
  std::uint64_t size = 8192;
  void fields(Fields& f) {
    f.integer("count", count, {1, 256}, "messages of each host");
    f.bytes("size", size, {8, 1 << 20}, "bytes of a message at most");
    f.integer("mtu", mtu, {256, 4096}, "path MTU");
    f.integer("retry_cnt", retry_cnt, {0, 7}, "as verbs have it");
    f.integer("timeout", timeout, {1, 31}, "as verbs have it");
    if (!roce::is_path_mtu(static_cast<std::uint32_t>(mtu))) f.refuse("mtu", "must be 256, 512, 1024, 2048 or 4096");
  }
};

struct Message {
  ibv_wr_opcode opcode;
  std::uint32_t bytes;
  bool uses_receive() const { return opcode != IBV_WR_RDMA_WRITE && opcode < IBV_WR_RDMA_READ; }
};

// One host: a queue pair to the next one, which it sends by, and one from the one before.
class Peer final : public nic_model::HostProgram {
 public:
  Peer(const WorkloadHost& on, const MessagesConfig& config, std::uint64_t seed) : config_(config) {
    host_ = &nic_model::host_of(on, config.mtu);
    if (host_->config().header_only) throw ConfigError("`" + on.name + "` has no bytes to compare");
    for (std::int64_t i = 0; i < config.count; i++) {
      const std::uint64_t random = splitmix64::next(seed);
      const ibv_wr_opcode opcode = kOpcodes[random % std::size(kOpcodes)];
      const auto bytes = static_cast<std::uint32_t>((random >> 8) % ((random >> 40) % 2 ? 64 : config.size + 1));
      messages.push_back({opcode, opcode == IBV_WR_ATOMIC_FETCH_AND_ADD
                                      ? 8
                                      : std::min<std::uint32_t>(bytes, static_cast<std::uint32_t>(config.size))});
    }
    own.resize(messages.size() * config.size);
    for (std::uint8_t& byte : own) byte = static_cast<std::uint8_t>(splitmix64::next(seed));
    theirs.assign(own.size(), kUntouched);
    answers.assign(own.size(), kUntouched);
    program_ = host_->submit(*this);
  }
  void run(std::function<void(Host&)> what) { tasks_.add(*host_, program_, std::move(what)); }
  void on_start(Host& host) override { tasks_.run(host); }
  void on_completion(Host& host, CompletionQueue& cq) override {
    nic_model::complete_all(host, cq, [&](const ibv_wc& wc) { on_wc(host, wc); });
  }

  void prepare(Host& host) {
    domain_ = host.alloc_pd();
    const std::uint32_t access = nic_model::ConnectOptions().access;
    for (auto [memory, at] : {std::pair(&own, &own_at), {&theirs, &theirs_at}, {&answers, &answers_at_}})
      *at = host.memory().map(domain_, memory->data(), memory->size(), access);
    counter_at = host.memory().map(domain_, &counter, 8, access);
    const auto depth = static_cast<std::uint32_t>(messages.size());
    CompletionQueue* cq = host.create_cq(4 * depth, program_);
    nic_model::QpInit init;
    init.domain = domain_;
    init.send_cq = init.receive_cq = cq;
    init.capacity = {depth, depth, 1, 1, 0};
    to_next = host.create_qp(init);
    from_before = host.create_qp(init);
    for (Qp* qp : {to_next, from_before})
      if (!qp) throw std::runtime_error("a NIC has too few queue pairs for its workloads");
    host.arm(*cq);
  }
  void connect(Host& host, const Peer& next, const Peer& before) {
    nic_model::ConnectOptions options;
    options.mtu = static_cast<std::uint32_t>(config_.mtu);
    options.timeout = static_cast<std::uint8_t>(config_.timeout);
    options.retry_cnt = static_cast<std::uint8_t>(config_.retry_cnt);
    const auto address = [&](const Peer& peer) { return peer.host_->config().source_for(*host.config().address); };
    nic_model::connect(host, *to_next, {address(next), next.from_before->number(), 0}, options);
    nic_model::connect(host, *from_before, {address(before), before.to_next->number(), 0}, options);
    for (std::size_t i = 0; i < before.messages.size(); i++) {
      if (!before.messages[i].uses_receive()) continue;
      ibv_sge sge{place(theirs_at, i), static_cast<std::uint32_t>(config_.size), theirs_at.key};
      ibv_recv_wr request{i, nullptr, &sge, 1};
      host.post_receive(*from_before, &request, nullptr);
    }
  }
  void post(Host& host, const Peer& next) {
    for (std::size_t i = 0; i < messages.size(); i++) {
      const Message& message = messages[i];
      const bool gets = message.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP || message.opcode == IBV_WR_RDMA_READ;
      const nic_model::Mapping& here = gets ? answers_at_ : own_at;
      ibv_sge sge{place(here, i), message.bytes, here.key};
      ibv_send_wr request{};
      request.wr_id = i;
      request.opcode = message.opcode;
      request.sg_list = &sge;
      request.num_sge = message.bytes ? 1 : 0;
      request.send_flags = IBV_SEND_SIGNALED;
      request.imm_data = htobe32(static_cast<std::uint32_t>(i));
      const nic_model::Mapping& there = message.opcode == IBV_WR_RDMA_READ ? next.own_at : next.theirs_at;
      request.wr.rdma.remote_addr = place(there, i);
      request.wr.rdma.rkey = there.key;
      if (message.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        request.wr.atomic.remote_addr = next.counter_at.address;
        request.wr.atomic.rkey = next.counter_at.key;
        request.wr.atomic.compare_add = 1;
      }
      if (host.post_send(*to_next, &request, nullptr) != 0) throw std::runtime_error("a message could not be posted");
    }
  }
  std::uint64_t place(const nic_model::Mapping& memory, std::size_t i) const {
    return memory.address + i * config_.size;
  }

  std::vector<Message> messages;
  std::vector<std::uint8_t> own, theirs, answers;  // what is sent or read; what comes; what READs and atomics bring
  std::uint64_t counter = 0;
  nic_model::Mapping own_at, theirs_at, counter_at;
  Qp* to_next = nullptr;
  Qp* from_before = nullptr;
  std::function<void(Host&, const ibv_wc&)> on_wc;

 private:
  const MessagesConfig& config_;
  Host* host_;
  std::uint32_t program_ = 0, domain_ = 0;
  nic_model::Mapping answers_at_;
  nic_model::HostTasks tasks_;
};

class Messages final : public Workload {
 public:
  Messages(std::span<const WorkloadHost> hosts, const MessagesConfig& config, std::uint64_t seed) : config_(config) {
    for (const WorkloadHost& host : hosts)
      peers_.push_back(std::make_unique<Peer>(host, config_, splitmix64::next(seed)));
    states_.resize(peers_.size());
    for (unsigned i = 0; i < peers_.size(); i++)
      peers_[i]->on_wc = [this, i](Host& host, const ibv_wc& wc) { completed(host, i, wc); };
  }
  void start(Nanos) override {
    on_all([this](Host& host, unsigned i) {
      peers_[i]->prepare(host);
      if (++prepared_ < peers_.size()) return;
      on_all([this](Host& own, unsigned j) {
        peers_[j]->connect(own, next(j), *peers_[(j + peers_.size() - 1) % peers_.size()]);
        if (++connected_ < peers_.size()) return;
        on_all([this](Host& sender, unsigned k) { peers_[k]->post(sender, next(k)); });
      });
    });
  }
  bool finished() const override { return finished_; }
  Progress progress() const override { return {done_}; }
  std::span<const FlowRecord> flows() const override { return {}; }
  void explain_waiting(Report& report, unsigned) const override {
    report.count("done", static_cast<std::int64_t>(done_));
  }
  void report(Report& report) const override {
    report.count("done", static_cast<std::int64_t>(done_));
    report.count("mismatches", static_cast<std::int64_t>(mismatches_));
    report.count("failed_completions", static_cast<std::int64_t>(failed_));
  }

 private:
  struct State {
    std::size_t sent = 0, received = 0;  // messages, of this host's and of those to it
    std::uint64_t added = 0;
    bool failed = false;
  };
  template <class What>
  void on_all(What what) {
    for (unsigned i = 0; i < peers_.size(); i++) peers_[i]->run([what, i](Host& host) { what(host, i); });
  }
  Peer& next(unsigned i) { return *peers_[(i + 1) % peers_.size()]; }

  void expect(bool holds) { mismatches_ += !holds; }
  // The whole place of a message: what came, and behind it nothing.
  bool holds(const std::vector<std::uint8_t>& memory, std::size_t i, const std::uint8_t* bytes, std::uint32_t count) {
    const std::uint8_t* const at = memory.data() + i * config_.size;
    return std::equal(bytes, bytes + count, at) &&
           std::all_of(at + count, at + config_.size, [](std::uint8_t byte) { return byte == kUntouched; });
  }

  void completed(Host& host, unsigned i, const ibv_wc& wc) {
    State& state = states_[i];
    const bool sends = wc.qp_num == peers_[i]->to_next->number();
    if (sends) done_++;
    if (wc.status != IBV_WC_SUCCESS) {
      failed_++;
      state.failed = true;
    } else if (sends) {
      sent(i, wc);
    } else {
      received(i, wc);
    }
    if (done_ < peers_.size() * peers_[0]->messages.size() || finished_) return;
    finished_ = true;
    tell_finished(host.now());
  }

  void sent(unsigned i, const ibv_wc& wc) {
    State& state = states_[i];
    Peer &own = *peers_[i], &other = next(i);
    const std::size_t number = state.sent++;
    expect(wc.wr_id == number && !state.failed);  // in order
    const Message& message = own.messages[number];
    const std::uint8_t* const bytes = own.own.data() + number * config_.size;
    if (message.opcode == IBV_WR_RDMA_READ) {
      expect(holds(own.answers, number, other.own.data() + number * config_.size, message.bytes));
    } else if (message.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      const std::uint64_t before = state.added++;
      std::uint8_t expected[8];
      std::memcpy(expected, &before, 8);
      expect(holds(own.answers, number, expected, 8) && other.counter >= state.added);
    } else if (!message.uses_receive() || message.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
      expect(holds(other.theirs, number, bytes, message.bytes));
    }
  }

  void received(unsigned i, const ibv_wc& wc) {
    State& state = states_[i];
    const Peer &own = *peers_[i], &sender = *peers_[(i + peers_.size() - 1) % peers_.size()];
    while (!sender.messages[state.received].uses_receive()) state.received++;
    const std::size_t number = state.received++;
    const Message& message = sender.messages[number];
    expect(wc.wr_id == number && wc.byte_len == message.bytes);
    if (wc.wc_flags & IBV_WC_WITH_IMM) expect(be32toh(wc.imm_data) == number);
    expect(((wc.wc_flags & IBV_WC_WITH_IMM) != 0) == (message.opcode != IBV_WR_SEND));
    expect(holds(own.theirs, number, sender.own.data() + number * config_.size, message.bytes));
  }

  const MessagesConfig config_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<State> states_;
  std::size_t prepared_ = 0, connected_ = 0;
  std::uint64_t done_ = 0, mismatches_ = 0, failed_ = 0;
  bool finished_ = false;
};

class MessagesOptions final : public WorkloadOptions {
 public:
  void fields(Fields& fields) override { config_.fields(fields); }
  Range<std::int64_t> hosts() const override { return {2, 8}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t seed) const override {
    return std::make_unique<Messages>(hosts, config_, seed);
  }

 private:
  MessagesConfig config_;
};

}  // namespace

void add_own_components(Registry& registry) {
  static constexpr Component kRows[] = {
      workload_component<MessagesOptions>("messages", "messages of all kinds, whose bytes are compared")};
  registry.add(kRows, "the swarm");
}

}  // namespace rocebox::swarm
