// SPDX-License-Identifier: BSD-3-Clause
// perftest's workloads between two processes: one host each, connected by RDMA CM.
#include "nic_model/host/workloads/remote_perftest.h"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "nic_model/host/workloads/programs.h"

namespace rocebox::nic_model {
namespace {

// Private data of the request and of the reply: what its sender measures, and with which memory.
struct Buffer {
  roce::Be64 address, size;
  roce::Be32 rkey;
  std::uint8_t measures;  // the verb, and in the lowest bit whether its latency
};
static_assert(sizeof(Buffer) == 21 && sizeof(Buffer) <= PrivateDataMax::kConnect);

class RemotePerftest final : public ClientOrServer {
 public:
  RemotePerftest(const WorkloadHost& on, const PerftestConfig& config, Verb verb, bool latency)
      : ClientOrServer(on, {config.address, config.port, static_cast<std::uint32_t>(config.cq_entries()),
                            config.recovery, "the other side's memory has bytes", config.address ? config.mtu : 0}),
        config_(config),
        verb_(verb),
        latency_(latency),
        takes_messages_(verb == Verb::kSend || (latency && !is_answered(verb))) {
    own_.size = config_.size;
    own_.measures = static_cast<std::uint8_t>(static_cast<unsigned>(verb) << 1 | latency);
  }

  void explain_waiting(Report& report, unsigned) const override {
    report.text("waits_for", is_client() ? "the server" : "a client, or what it sends");
    report.count("messages", messages_);
  }
  void report(Report& report) const override {
    report.text("role", is_client() ? "client" : "server");
    report.count("messages", messages_);
    report.text("error", error_);
    if (latency_)
      report_times(report, times_);
    else if (const double seconds = static_cast<double>(ended_ - begun_) / 1e9; seconds > 0)
      report_bandwidth(report, seconds);
  }
  void on_connection_event(Host& host, const ConnectionEvent& event) override;

 private:
  void report_bandwidth(Report& report, double seconds) const {
    report.duration("completion_time", ended_ - begun_);
    report.real("average_bits_per_second",
                static_cast<double>(messages_) * static_cast<double>(config_.size) * 8 / seconds);
    report.real("messages_per_second", static_cast<double>(messages_) / seconds);
  }
  bool make(Host& host);
  void connect(Host& host) override;
  void accept(Host& host, const ConnectionEvent& event);
  bool take(const ConnectionEvent& event);
  std::string what_else() const;
  void on_wc(Host& host, const ibv_wc& wc) override;
  void on_ping(Host& host, const ibv_wc& wc);
  ConnectionOptions connection_options() const;
  void fill(Host& host);
  bool all_done(Nanos now) const {
    if (latency_) return static_cast<std::int64_t>(times_.size()) == config_.iters;
    // What a `duration` cuts off may have no completion.
    return !more(now) && posted_ - completed_ <= (config_.duration ? config_.cq_mod - 1 : 0);
  }
  bool more(Nanos now) const { return config_.duration ? now - begun_ < config_.duration : posted_ < config_.iters; }
  void post_receive(Host& host);
  bool post(Host& host, bool signaled);
  void leave(Host& host, std::string_view error);

  const PerftestConfig config_;
  const Verb verb_;
  const bool latency_;
  const bool takes_messages_;  // they complete receive requests
  std::vector<std::uint8_t> memory_;
  std::uint32_t domain_ = 0;
  Mapping mapping_;
  Qp* qp_ = nullptr;
  ConnectionId id_ = 0;
  Buffer own_{}, there_{};
  std::int64_t posted_ = 0, completed_ = 0, messages_ = 0;
  Nanos begun_ = 0, ended_ = 0, sent_ = 0;
  std::vector<Nanos> times_;  // of a client that measures latency
};

bool RemotePerftest::make(Host& host) {
  domain_ = host.alloc_pd();
  memory_.resize(config_.size);
  mapping_ = host.memory().map(domain_, memory_.data(), memory_.size(), ConnectOptions().access);
  QpInit init;
  init.domain = domain_;
  init.send_cq = init.receive_cq = cq_;
  const auto depth = static_cast<std::uint32_t>(config_.tx_depth);
  init.capacity = {depth, 2 * depth, 1, 1, static_cast<std::uint32_t>(config_.inline_size)};
  qp_ = mapping_.key ? host.create_qp(init) : nullptr;
  if (!qp_) return false;
  config_.recovery.apply(host, *qp_);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  host.modify_qp(*qp_, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  for (std::int64_t i = 0; takes_messages_ && i < (latency_ ? 4 : 2 * config_.tx_depth); i++) post_receive(host);
  own_.address = mapping_.address;
  own_.rkey = mapping_.key;
  return true;
}

ConnectionOptions RemotePerftest::connection_options() const {
  ConnectionOptions options;
  options.path_mtu = static_cast<std::uint32_t>(config_.mtu);
  options.ack_timeout = static_cast<std::uint8_t>(config_.timeout);
  options.traffic_class = static_cast<std::uint8_t>(config_.traffic_class);
  options.min_rnr_timer = 1;  // a receiver that is late is so by little
  if (is_answered(verb_))
    options.responder_resources = options.initiator_depth = static_cast<std::uint8_t>(config_.outs);
  return options;
}

void RemotePerftest::connect(Host& host) {
  ConnectionOptions options = connection_options();
  if (!make(host)) return end(host, "no room for a queue pair and its memory");
  options.private_data = {reinterpret_cast<const std::uint8_t*>(&own_), sizeof own_};
  if (host.connections().connect(program_, *config_.address, PortSpace::kTcp, port_, qp_, options, id_) != 0)
    end(host, "cannot connect: too many connections");
}

bool RemotePerftest::take(const ConnectionEvent& event) {
  if (event.private_data_bytes < sizeof there_) return false;
  std::memcpy(&there_, event.private_data.data(), sizeof there_);
  return there_.size == config_.size && there_.measures == own_.measures;
}

// Of the other end.
std::string RemotePerftest::what_else() const {
  constexpr const char* kVerbs[] = {"write", "read", "send", "atomic"};
  return fmt::format("the server runs {}_{} with messages of {} bytes", kVerbs[there_.measures >> 1 & 3],
                     there_.measures & 1 ? "lat" : "bw", static_cast<std::uint64_t>(there_.size));
}

// One client; others are rejected, with what this server measures where they measure something else.
void RemotePerftest::accept(Host& host, const ConnectionEvent& event) {
  ConnectionOptions options = connection_options();
  if (qp_) return void(host.connections().reject(event.id));
  const bool is_same = take(event);
  if (!is_same || !make(host)) {
    const std::span<const std::uint8_t> own(reinterpret_cast<const std::uint8_t*>(&own_), sizeof own_);
    return void(host.connections().reject(event.id, is_same ? std::span<const std::uint8_t>() : own));
  }
  options.private_data = {reinterpret_cast<const std::uint8_t*>(&own_), sizeof own_};
  id_ = event.id;
  if (host.connections().accept(event.id, *qp_, options) != 0) leave(host, "cannot accept");
}

void RemotePerftest::on_connection_event(Host& host, const ConnectionEvent& event) {
  steps_++;
  if (event.type == ConnectionEventType::kConnectRequest) return accept(host, event);
  if (event.id != id_) return;
  switch (event.type) {
    case ConnectionEventType::kEstablished:
      begun_ = host.now();
      if (!is_client()) return;
      if (!take(event)) return leave(host, what_else());
      return latency_ ? void(post(host, true)) : fill(host);
    case ConnectionEventType::kDisconnected:
      return end(host, !is_client() || all_done(host.now()) ? "" : "the server has disconnected");
    case ConnectionEventType::kTimewaitExit:
      host.destroy_qp(*qp_);
      host.memory().remove(mapping_.key);
      return;
    default:
      if (event.type == ConnectionEventType::kRejected && event.private_data_bytes >= sizeof there_ && !take(event))
        return end(host, what_else());
      end(host, why(event));
  }
}

void RemotePerftest::on_wc(Host& host, const ibv_wc& wc) {
  if (wc.status == IBV_WC_WR_FLUSH_ERR) return;
  steps_++;
  if (wc.status != IBV_WC_SUCCESS) return leave(host, "a work request failed");
  if (latency_) return on_ping(host, wc);
  if (wc.opcode & IBV_WC_RECV) {
    messages_++;
    return post_receive(host);
  }
  const std::int64_t before = completed_;
  completed_ = std::min(posted_, (completed_ / config_.cq_mod + 1) * config_.cq_mod);
  messages_ += completed_ - before;
  ended_ = host.now();
  fill(host);
  if (all_done(host.now())) host.connections().disconnect(id_);
}

void RemotePerftest::fill(Host& host) {
  while (posted_ - completed_ < config_.tx_depth && more(host.now())) {
    const bool last = !config_.duration && posted_ + 1 == config_.iters;
    if (!post(host, last || (posted_ + 1) % config_.cq_mod == 0)) return;
  }
}

// A WRITE is its number, by an immediate. What a READ or an atomic brings is its answer; others are answered by the
// server with such a message.
void RemotePerftest::on_ping(Host& host, const ibv_wc& wc) {
  if (takes_messages_) {
    if (!(wc.opcode & IBV_WC_RECV)) return;
    post_receive(host);
  }
  messages_++;
  if (!is_client()) return void(post(host, true));
  times_.push_back((host.now() - sent_) / (is_answered(verb_) ? 1 : 2));
  if (posted_ < config_.iters) return void(post(host, true));
  host.connections().disconnect(id_);
}

void RemotePerftest::post_receive(Host& host) {
  ibv_sge sge{mapping_.address, static_cast<std::uint32_t>(config_.size), mapping_.key};
  ibv_recv_wr request{};
  request.sg_list = &sge;
  request.num_sge = verb_ == Verb::kSend;
  host.post_receive(*qp_, &request, nullptr);
}

bool RemotePerftest::post(Host& host, bool signaled) {
  ibv_sge sge{mapping_.address, static_cast<std::uint32_t>(config_.size), mapping_.key};
  ibv_send_wr request{};
  request.opcode = latency_ && verb_ == Verb::kWrite ? IBV_WR_RDMA_WRITE_WITH_IMM : config_.opcode(verb_);
  request.sg_list = &sge;
  request.num_sge = 1;
  const bool inlined = config_.size <= static_cast<std::uint64_t>(config_.inline_size);
  if (inlined) sge.addr = reinterpret_cast<std::uintptr_t>(memory_.data());  // that the host copies, not the NIC
  request.send_flags = (signaled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0u) |
                       (inlined ? static_cast<unsigned>(IBV_SEND_INLINE) : 0u);
  request.imm_data = htobe32(static_cast<std::uint32_t>(posted_));
  if (verb_ == Verb::kAtomic)
    request.wr.atomic = {there_.address, 1, 0, static_cast<std::uint32_t>(there_.rkey)};
  else
    request.wr.rdma = {there_.address, static_cast<std::uint32_t>(there_.rkey)};
  sent_ = host.now();
  if (host.post_send(*qp_, &request, nullptr) != 0) return false;
  posted_++;
  return true;
}

void RemotePerftest::leave(Host& host, std::string_view error) {
  note_error(error);
  host.connections().disconnect(id_);
}

}  // namespace

std::unique_ptr<Workload> remote_perftest(const WorkloadHost& on, const PerftestConfig& config, Verb verb,
                                          bool latency) {
  const char* both = config.qp != 1           ? "qp"
                     : config.connection != 0 ? "connection"
                     : config.bidirectional   ? "bidirectional"
                     : config.rate_limit != 0 ? "rate_limit"
                     : config.size_max != 0   ? "size_max"
                                              : nullptr;
  if (both)
    throw ConfigError("`" + std::string(both) + "` is for a workload with two hosts, and `" + on.name +
                      "` is its only one, which connects one queue pair by RDMA CM");
  return std::make_unique<RemotePerftest>(on, config, verb, latency);
}

}  // namespace rocebox::nic_model
