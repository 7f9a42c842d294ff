// SPDX-License-Identifier: BSD-3-Clause
// What a mesh is made of: its connections, and what runs on each host. For mesh.cc alone.
#pragma once
#include <cstring>
#include <deque>
#include <map>

#include "nic_model/host/connect.h"
#include "nic_model/host/workloads/mesh.h"
#include "nic_model/host/workloads/programs.h"

namespace rocebox::nic_model {

// Of two hosts, one of whom sends.
struct Mesh::Connection {
  unsigned source, destination;
  std::uint32_t number = 0;
  Qp* near = nullptr;
  Qp* far = nullptr;
  std::uint32_t near_psn = 0, far_psn = 0;  // drawn, as programs do it: by them others tell connections apart
  bool ready = false, is_awaited = false;
  bool failed = false;                    // no transfer by it ends any more
  ibv_wc_status status = IBV_WC_SUCCESS;  // of what its sender posted: the first other one
  std::uint32_t under_way = 0;            // work requests that are not complete
  std::size_t unfinished = 0;             // transfers
  struct Waiting {
    std::size_t number;
    std::uint64_t sent = 0;
  };
  std::deque<Waiting> waiting;
  bool is_idle() const { return waiting.empty() && under_way == 0 && !failed; }
};

// What runs on one host.
class Mesh::Endpoint final : public HostProgram {
  static constexpr std::uint32_t kReceives = 1024;  // posted at each host; each is posted again at once
  static constexpr std::uint32_t kCqEntries = 1u << 14;
  // Of RDMA CM: each mesh of a host listens at the first port from here on that is free (perftest's 18515).
  static constexpr std::uint16_t kFirstPort = 18515;
  static constexpr std::uint32_t kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

 public:
  Endpoint(Mesh& mesh, unsigned number, const WorkloadHost& on) : mesh_(mesh), number_(number), name_(on.name) {
    host_ = &host_of(on, mesh.options_.mtu);
    program_ = host_->submit(*this);
  }

  void call(Nanos at, std::function<void(Nanos)> what) {
    mesh_.calls_++;
    if (at > 0) {
      later_.emplace(at, std::move(what));
      run([this](Host& host) { arm(host); });
    } else {
      run([this, what = std::move(what)](Host& host) { make(what, host.now()); });
    }
  }
  void run(std::function<void(Host&)> what) { tasks_.add(*host_, program_, std::move(what)); }

  void on_start(Host& host) override {
    if (!cq_) prepare(host);
    tasks_.run(host);
  }
  void on_timer(Host& host, Timer&) override {
    while (!later_.empty() && later_.begin()->first <= host.now()) {
      auto what = std::move(later_.begin()->second);
      later_.erase(later_.begin());
      make(what, host.now());
    }
    arm(host);
  }
  void on_completion(Host& host, CompletionQueue& cq) override {
    complete_all(host, cq, [&](const ibv_wc& completion) { one(host, completion); });
  }

  Qp* make_qp() {
    QpInit init;
    init.domain = domain_;
    init.send_cq = init.receive_cq = cq_;
    init.shared_receive_queue = receives_;
    init.capacity.max_send_wr = static_cast<std::uint32_t>(mesh_.options_.tx_depth);
    init.capacity.max_send_sge = 1;
    Qp* qp = host_->create_qp(init);
    if (!qp) no_queue_pair_left(name_, host_->config());
    mesh_.options_.recovery.apply(*host_, *qp);
    return qp;
  }
  void connect(Host& host, Qp& qp, std::uint32_t psn, const Qp& peer, std::uint32_t peer_psn, const Host& other) {
    ConnectOptions options;
    options.mtu = static_cast<std::uint32_t>(mesh_.options_.mtu);
    options.timeout = static_cast<std::uint8_t>(mesh_.options_.timeout);
    options.retry_cnt = static_cast<std::uint8_t>(mesh_.options_.retry_cnt);
    options.traffic_class = static_cast<std::uint8_t>(mesh_.options_.traffic_class);
    options.psn = psn;
    nic_model::connect(host, qp, {other.config().source_for(*host.config().address), peer.number(), peer_psn}, options);
  }

  // RDMA CM: what is asked of `destination`, and what comes of it.

  void connect_by_cm(Host& host, Connection& c, Endpoint& destination) {
    c.near = make_qp();
    ConnectionOptions options = cm_options();
    roce::Be32 number;
    number = c.number;
    options.private_data = {reinterpret_cast<const std::uint8_t*>(&number), sizeof number};
    ConnectionId id = 0;
    const roce::IpAddress to = destination.host_->config().source_for(*host.config().address);
    if (host.connections().connect(program_, to, PortSpace::kTcp, destination.port_, c.near, options, id))
      mesh_.refused(host, c, "nothing could be asked");
    else
      asked_[id] = &c;
  }
  void on_connection_event(Host& host, const ConnectionEvent& event) override {
    if (event.type == ConnectionEventType::kConnectRequest) return accept(host, event);
    const auto found = asked_.find(event.id);
    if (found == asked_.end()) return;
    Connection& c = *found->second;
    asked_.erase(found);
    if (event.type == ConnectionEventType::kEstablished)
      mesh_.became_ready(host, c);
    else
      mesh_.refused(host, c,
                    event.type == ConnectionEventType::kUnreachable ? "no answer"
                    : event.type == ConnectionEventType::kRejected  ? "rejected"
                                                                    : "its queue pair cannot be moved to RTS");
  }

  void prepare(Host& host) {
    domain_ = host.alloc_pd();
    key_ = host.memory().add_without_bytes(domain_, 0, UINT64_MAX, kAccess);
    cq_ = host.create_cq(kCqEntries, program_);
    ibv_srq_init_attr shared{nullptr, {kReceives, 1, 0}};
    receives_ = host.create_srq(shared);
    for (std::uint32_t i = 0; i < kReceives; i++) post_receive(host);
    host.arm(*cq_);
    for (port_ = kFirstPort; mesh_.options_.rdma_cm && port_ != 0; port_++)
      if (host.connections().listen(program_, PortSpace::kTcp, port_) == 0) break;
  }
  Host& host() { return *host_; }
  const std::string& name() const { return name_; }
  Progress progress() const { return host_->progress(program_); }
  std::uint32_t key() const { return key_; }
  bool holds(std::uint64_t place, std::uint64_t bytes) const {
    return host_->memory().find(key_)->placed->covers(place, bytes);
  }
  std::uint64_t bytes_placed(std::uint64_t place, std::uint64_t bytes) const {
    return cq_ ? host_->memory().find(key_)->placed->bytes_covered(place, bytes) : 0;
  }
  std::uint64_t bytes_placed() const { return cq_ ? host_->memory().find(key_)->placed->bytes_covered() : 0; }

 private:
  void make(const std::function<void(Nanos)>& called, Nanos now) {
    called(now);
    mesh_.calls_--;
    mesh_.look_whether_given_up(now);
  }
  ConnectionOptions cm_options() const {
    ConnectionOptions options;
    options.path_mtu = static_cast<std::uint32_t>(mesh_.options_.mtu);
    options.retry_count = static_cast<std::uint8_t>(mesh_.options_.retry_cnt);
    options.ack_timeout = static_cast<std::uint8_t>(mesh_.options_.timeout);
    options.min_rnr_timer = ConnectOptions().min_rnr_timer;
    options.traffic_class = static_cast<std::uint8_t>(mesh_.options_.traffic_class);
    return options;
  }
  void accept(Host& host, const ConnectionEvent& event) {
    roce::Be32 number;
    number = 0;
    std::memcpy(&number, event.private_data.data(), sizeof number);
    Connection* const c = event.private_data_bytes >= sizeof number && number < mesh_.by_number_.size()
                              ? mesh_.by_number_[static_cast<std::uint32_t>(number)]
                              : nullptr;
    // Of another destination, or asked for a second time: a stranger's.
    if (!c || c->destination != number_ || c->far) {
      host.connections().reject(event.id);
      return;
    }
    c->far = make_qp();
    if (host.connections().accept(event.id, *c->far, cm_options()) != 0) mesh_.failed_++;
  }
  void post_receive(Host& host) {
    ibv_recv_wr request{};
    host.post_receive(*receives_, &request, nullptr);
  }
  void one(Host& host, const ibv_wc& completion) {
    auto* const sent = reinterpret_cast<Connection*>(completion.wr_id);  // null: it is a receive request
    if (sent) sent->under_way--;
    if (completion.status != IBV_WC_SUCCESS) {
      if (sent)
        mesh_.fail(host, *sent, completion.status);
      else if (completion.status != IBV_WC_WR_FLUSH_ERR)
        mesh_.failed_++;
      return;
    }
    if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      post_receive(host);
      return mesh_.received(number_, be32toh(completion.imm_data), host.now());
    }
    mesh_.post(host, *sent);
  }
  void arm(Host& host) {
    if (!later_.empty()) host.arm_timer(program_, timer_, later_.begin()->first);
  }

  Mesh& mesh_;
  unsigned number_;
  std::string name_;
  Host* host_;
  std::uint32_t program_ = 0, domain_ = 0, key_ = 0;
  CompletionQueue* cq_ = nullptr;
  ReceiveQueue* receives_ = nullptr;
  HostTasks tasks_;
  std::multimap<Nanos, std::function<void(Nanos)>> later_;
  Timer timer_;
  std::uint16_t port_ = 0;
  std::map<ConnectionId, Connection*> asked_;  // by this side, and not answered yet
};

}  // namespace rocebox::nic_model
