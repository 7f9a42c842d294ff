// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "nic_model/host/connect.h"
#include "nic_model/host/workloads/programs.h"

namespace rocebox::nic_model {
namespace {

constexpr std::uint32_t kReceives = 1024;  // posted at each host; each is posted again at once
constexpr std::uint32_t kCqEntries = 1u << 14;
// Memory without bytes, as large as anybody wants: each sender has a part of it.
constexpr std::uint64_t kPartBytes = std::uint64_t{1} << 44;
// Of RDMA CM: each mesh of a host listens at the first port from here on that is free (perftest's 18515).
constexpr std::uint16_t kFirstPort = 18515;
constexpr std::uint32_t kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

}  // namespace

// Of two hosts, one of whom sends.
struct Mesh::Connection {
  unsigned source, destination;
  std::uint32_t number = 0;
  Qp* near = nullptr;
  Qp* far = nullptr;
  std::uint32_t near_psn = 0, far_psn = 0;  // drawn, as programs do it: by them others tell connections apart
  bool ready = false, is_awaited = false;
  ibv_wc_status status = IBV_WC_SUCCESS;  // of what its sender posted: the first other one
  std::uint64_t next_place = 0;
  struct Waiting {
    std::size_t number;
    std::uint64_t sent = 0;
  };
  std::deque<Waiting> waiting;
};

// What runs on one host.
class Mesh::Endpoint final : public HostProgram {
 public:
  Endpoint(Mesh& mesh, unsigned number, const WorkloadHost& on) : mesh_(mesh), number_(number) {
    host_ = &host_of(on, mesh.options_.mtu);
    program_ = host_->submit(*this);
  }

  void call(Nanos at, std::function<void(Nanos)> what) {
    if (at > 0) {
      later_.emplace(at, std::move(what));
      run([this](Host& host) { arm(host); });
    } else {
      run([what = std::move(what)](Host& host) { what(host.now()); });
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
      what(host.now());
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
    if (!qp) throw std::runtime_error("a NIC has too few queue pairs for its workloads: give it more `queue_pairs:`");
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
      mesh_.refused(c, "nothing could be asked");
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
      mesh_.refused(c, event.type == ConnectionEventType::kUnreachable ? "no answer"
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
  Progress progress() const { return host_->progress(program_); }
  std::uint32_t key() const { return key_; }
  bool holds(std::uint64_t place, std::uint64_t bytes) const {
    return host_->memory().find(key_)->placed->covers(place, bytes);
  }
  std::uint64_t bytes_placed() const { return cq_ ? host_->memory().find(key_)->placed->bytes_covered() : 0; }

 private:
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
    if (completion.status != IBV_WC_SUCCESS) {
      auto* const sent = reinterpret_cast<Connection*>(completion.wr_id);  // null: it is a receive request
      if (sent && sent->status == IBV_WC_SUCCESS) sent->status = completion.status;
      if (completion.status != IBV_WC_WR_FLUSH_ERR) mesh_.failed_++;
      return;
    }
    if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      post_receive(host);
      return mesh_.received(number_, be32toh(completion.imm_data), host.now());
    }
    mesh_.post(host, *reinterpret_cast<Connection*>(completion.wr_id));
  }
  void arm(Host& host) {
    if (!later_.empty()) host.arm_timer(program_, timer_, later_.begin()->first);
  }

  Mesh& mesh_;
  unsigned number_;
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

Mesh::Mesh(std::span<const WorkloadHost> hosts, const MeshOptions& options, OnReceived on_received)
    : options_(options), on_received_(std::move(on_received)) {
  for (const WorkloadHost& host : hosts)
    endpoints_.push_back(std::make_unique<Endpoint>(*this, static_cast<unsigned>(endpoints_.size()), host));
}

Mesh::~Mesh() = default;

void Mesh::call(unsigned host, Nanos at, std::function<void(Nanos now)> what) {
  endpoints_[host]->call(at, std::move(what));
}

Mesh::Connection& Mesh::connection(unsigned source, unsigned destination) {
  std::unique_ptr<Connection>& place = connections_[{source, destination}];
  if (place) return *place;
  place = std::make_unique<Connection>();
  Connection& c = *place;
  c.source = source;
  c.destination = destination;
  c.number = static_cast<std::uint32_t>(by_number_.size());
  c.next_place = source * kPartBytes;
  by_number_.push_back(&c);
  options_.rdma_cm ? connect_by_cm(c) : connect_by_call(c);
  return c;
}

// Both hosts know of each other as by a side channel; each then moves its own queue pair in its own call.
void Mesh::connect_by_call(Connection& c) {
  Endpoint& near = *endpoints_[c.source];
  Endpoint& far = *endpoints_[c.destination];
  far.run([&c, &near, &far, this](Host& host) {
    c.far = far.make_qp();
    c.far_psn = static_cast<std::uint32_t>(host.random()) & roce::kPsnMask;
    near.run([&c, &near, &far, this](Host& own) {
      c.near = near.make_qp();
      c.near_psn = static_cast<std::uint32_t>(own.random()) & roce::kPsnMask;
      near.connect(own, *c.near, c.near_psn, *c.far, c.far_psn, far.host());
      far.run([&c, &near, &far, this](Host& other) {
        far.connect(other, *c.far, c.far_psn, *c.near, c.near_psn, near.host());
        near.run([&c, this](Host& again) { became_ready(again, c); });
      });
    });
  });
}

// The far host listens before the near one asks.
void Mesh::connect_by_cm(Connection& c) {
  Endpoint& near = *endpoints_[c.source];
  Endpoint& far = *endpoints_[c.destination];
  far.run([&c, &near, &far](Host&) { near.run([&c, &near, &far](Host& host) { near.connect_by_cm(host, c, far); }); });
}

void Mesh::became_ready(Host& host, Connection& c) {
  c.ready = true;
  ready_++;
  post(host, c);
  if (c.is_awaited && --awaited_ == 0) when_connected_(host.now());
}

void Mesh::refused(const Connection& c, const char* why) {
  failed_++;
  if (error_.empty()) error_ = fmt::format("no connection from host {} to host {}: {}", c.source, c.destination, why);
}

void Mesh::connect_all(std::span<const std::pair<unsigned, unsigned>> pairs, std::function<void(Nanos now)> then) {
  when_connected_ = std::move(then);
  for (const auto& [source, destination] : pairs) {
    Connection& c = connection(source, destination);
    if (c.ready || c.is_awaited) continue;
    c.is_awaited = true;
    awaited_++;
  }
}

std::size_t Mesh::transfer(unsigned source, unsigned destination, std::uint64_t bytes, Nanos now) {
  Connection& c = connection(source, destination);
  const std::size_t number = flows_.size();
  flows_.push_back({source, destination, bytes, now, kNever});
  places_.push_back(c.next_place);
  c.next_place += bytes;
  unfinished_++;
  c.waiting.push_back({number});
  if (c.ready) endpoints_[source]->run([this, &c](Host& host) { post(host, c); });
  return number;
}

void Mesh::post(Host& host, Connection& c) {
  while (!c.waiting.empty()) {
    Connection::Waiting& first = c.waiting.front();
    const FlowRecord& flow = flows_[first.number];
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(options_.chunk, flow.bytes - first.sent));
    const bool is_last = first.sent + bytes == flow.bytes;
    ibv_sge sge{first.sent, bytes, endpoints_[c.source]->key()};
    ibv_send_wr request{};
    request.wr_id = reinterpret_cast<std::uintptr_t>(&c);
    request.opcode = is_last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    request.sg_list = &sge;
    request.num_sge = bytes ? 1 : 0;
    request.send_flags = IBV_SEND_SIGNALED;
    request.imm_data = htobe32(static_cast<std::uint32_t>(first.number));
    request.wr.rdma.remote_addr = places_[first.number] + first.sent;
    request.wr.rdma.rkey = endpoints_[c.destination]->key();
    if (host.post_send(*c.near, &request, nullptr) != 0) return;  // full: when a work request is complete
    first.sent += bytes;
    if (is_last) c.waiting.pop_front();
  }
}

void Mesh::received(unsigned host, std::uint32_t number, Nanos now) {
  // Where nobody checks ICRCs an immediate may be any number.
  if (number >= flows_.size() || flows_[number].destination != host || flows_[number].end != kNever) {
    unexpected_++;
    return;
  }
  FlowRecord& flow = flows_[number];
  if (!endpoints_[host]->holds(places_[number], flow.bytes)) misplaced_++;
  flow.end = now;
  bytes_received_ += flow.bytes;
  unfinished_--;
  on_received_(number, now);
}

double Mesh::bytes_placed() const {
  double sum = 0;
  for (const auto& endpoint : endpoints_) sum += static_cast<double>(endpoint->bytes_placed());
  return sum;
}

Progress Mesh::progress() const {
  Progress sum{bytes_received_ + flows_.size() + failed_};
  for (const auto& endpoint : endpoints_) sum.add(endpoint->progress());
  return sum;
}

void Mesh::explain_waiting(Report& report, unsigned lines) const {
  if (awaited_ > 0) report.count("connections_awaited", static_cast<std::int64_t>(awaited_));
  if (!error_.empty()) report.text("error", error_);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < flows_.size() && open.size() < lines; i++)
    if (flows_[i].end == kNever) open.push_back(i);
  report.table("unfinished", open.size(), [&](Report& row, std::size_t i) {
    const FlowRecord& flow = flows_[open[i]];
    const auto at = connections_.find({flow.source, flow.destination});
    row.count("source_number", flow.source);
    row.count("destination_number", flow.destination);
    row.count("bytes", static_cast<std::int64_t>(flow.bytes));
    const Qp* qp = at == connections_.end() ? nullptr : at->second->near;
    row.count("unacknowledged_psn", qp ? std::int64_t{qp->requester.unacknowledged_psn()} : -1);
    row.count("qpn", qp ? std::int64_t{qp->number()} : -1);
    row.text("state", !qp || !at->second->ready ? "not connected" : waiting_state(*qp));
    row.text("status", status_name(at == connections_.end() ? IBV_WC_SUCCESS : at->second->status));
  });
}

}  // namespace rocebox::nic_model
