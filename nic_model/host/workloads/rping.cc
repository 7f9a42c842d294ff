// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/rping.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "nic_model/host/workloads/programs.h"

namespace rocebox::nic_model {
namespace {

constexpr std::uint64_t kBytesMin = 24;  // for the text in front, as rping has it
constexpr unsigned kQueueDepth = 16;     // RPING_SQ_DEPTH

struct RpingConfig {
  std::optional<roce::IpAddress> address;
  std::int64_t port = 7174, count = 1;
  std::uint64_t size = 64;
  bool validate = true, persistent = false;
  RecoveryOptions recovery;

  void fields(Fields& f) {
    f.address("address", address, Presence::kOptional, "server to connect to, as a client; left out: be one");
    f.integer("port", port, {1, 65535}, "port of RDMA CM");
    f.integer("count", count, {1, std::int64_t{1} << 40}, "pings of a client");
    f.bytes("size", size, {kBytesMin, 1 << 20}, "bytes of a ping; both sides say the same");
    f.boolean("validate", validate, "the client compares what comes back");
    f.boolean("persistent", persistent, "the server stays when its first client has gone");
    recovery.fields(f);
    if (address && persistent) f.refuse("persistent", "is a server's, which has no `address`");
    if (!address && count != 1) f.refuse("count", "is a client's, which has an `address`");
  }
};

// What a client sends: where its buffer is, for the server to read, and then to write.
struct Advertisement {
  roce::Be64 address;
  roce::Be32 rkey, size;
};
static_assert(sizeof(Advertisement) == 16);

// One connection, of either side.
struct Session {
  ConnectionId id = 0;
  Qp* qp = nullptr;
  std::uint32_t domain = 0;
  Mapping mapping;
  std::vector<std::uint8_t> memory;
  bool is_writing = false;  // the second half of a ping: the server writes back
  bool is_over = false;
};

// Parts of a session's memory.
constexpr std::uint64_t kReceived = 0, kToSend = 16, kBuffers = 32;

class Rping final : public ClientOrServer {
 public:
  Rping(const WorkloadHost& on, const RpingConfig& config)
      : ClientOrServer(on, {config.address, config.port, 1024, config.recovery, "rping's messages are read"}),
        config_(config) {}

  void explain_waiting(Report& report, unsigned) const override {
    report.text("waits_for", config_.address ? "the server's next message" : "clients");
    report.count("pings", static_cast<std::int64_t>(pings_));
  }
  void report(Report& report) const override {
    report.text("role", config_.address ? "client" : "server");
    report.count("connections", static_cast<std::int64_t>(connections_));
    report.count("pings", static_cast<std::int64_t>(pings_));
    report.count("mismatches", static_cast<std::int64_t>(mismatches_));
    report.text("error", error_);
  }

  void on_connection_event(Host& host, const ConnectionEvent& event) override;

 private:
  std::unique_ptr<Session> make(Host& host);
  void release(Host& host, Session& session);
  Session* find(ConnectionId id);
  void connect(Host& host) override;
  void on_wc(Host& host, const ibv_wc& wc) override;
  void on_message(Host& host, Session& session);
  void ping(Host& host, Session& session);
  void check(Host& host, Session& session);
  void advertise(Host& host, Session& session, std::uint64_t buffer);
  void post_receive(Host& host, Session& session);
  void post_send(Host& host, Session& session, ibv_wr_opcode opcode, std::uint64_t offset, std::uint64_t bytes);
  void leave(Host& host, Session& session, const char* error);
  // The buffers of the RDMA side by side: what is sent out, and what comes back (a server has the latter alone).
  std::uint64_t source() const { return kBuffers; }
  std::uint64_t sink() const { return kBuffers + config_.size; }

  const RpingConfig config_;
  std::map<std::uint32_t, std::unique_ptr<Session>> sessions_;  // by queue pair number
  std::uint64_t pings_ = 0, mismatches_ = 0, connections_ = 0;
};

void Rping::connect(Host& host) {
  std::unique_ptr<Session> session = make(host);
  const int error = !session ? ENOMEM
                             : host.connections().connect(program_, *config_.address, PortSpace::kTcp, port_,
                                                          session->qp, {}, session->id);
  if (error) return end(host, "cannot connect: too many queue pairs or connections");
  sessions_[session->qp->number()] = std::move(session);
}

std::unique_ptr<Session> Rping::make(Host& host) {
  auto session = std::make_unique<Session>();
  session->domain = host.alloc_pd();
  session->memory.resize(kBuffers + 2 * config_.size);
  session->mapping = host.memory().map(session->domain, session->memory.data(), session->memory.size(),
                                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  QpInit init;
  init.domain = session->domain;
  init.send_cq = init.receive_cq = cq_;
  init.capacity = {kQueueDepth, kQueueDepth, 1, 1, 0};
  session->qp = session->mapping.key ? host.create_qp(init) : nullptr;
  if (!session->qp) return nullptr;
  config_.recovery.apply(host, *session->qp);
  // As rdma_create_qp does, so that a receive request can be posted before anything can come.
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  host.modify_qp(*session->qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  post_receive(host, *session);
  return session;
}

void Rping::release(Host& host, Session& session) {
  host.destroy_qp(*session.qp);
  host.memory().remove(session.mapping.key);
}

Session* Rping::find(ConnectionId id) {
  for (const auto& [number, session] : sessions_)
    if (session->id == id) return session.get();
  return nullptr;
}

void Rping::on_connection_event(Host& host, const ConnectionEvent& event) {
  steps_++;
  if (event.type == ConnectionEventType::kConnectRequest) {
    std::unique_ptr<Session> session = make(host);
    if (!session || host.connections().accept(event.id, *session->qp) != 0) {
      if (session) release(host, *session);
      host.connections().reject(event.id);
      return;
    }
    session->id = event.id;
    sessions_[session->qp->number()] = std::move(session);
    return;
  }
  Session* session = find(event.id);
  if (!session) return;
  switch (event.type) {
    case ConnectionEventType::kEstablished:
      connections_++;
      if (config_.address) ping(host, *session);
      return;
    case ConnectionEventType::kDisconnected:
      session->is_over = true;
      if (config_.address && pings_ < static_cast<std::uint64_t>(config_.count))
        end(host, "the server has disconnected");
      else if (!config_.persistent)
        end(host, "");
      return;
    case ConnectionEventType::kTimewaitExit:
      break;
    default:
      if (is_client()) end(host, why(event));
  }
  const std::uint32_t number = session->qp->number();
  release(host, *session);
  sessions_.erase(number);
}

void Rping::on_wc(Host& host, const ibv_wc& wc) {
  const auto found = sessions_.find(wc.qp_num);
  if (found == sessions_.end()) return;
  Session& session = *found->second;
  if (session.is_over || wc.status == IBV_WC_WR_FLUSH_ERR) return;
  steps_++;
  if (wc.status != IBV_WC_SUCCESS) return leave(host, session, "a work request failed");
  if (wc.opcode == IBV_WC_RECV) {
    if (wc.byte_len != sizeof(Advertisement)) return leave(host, session, "a message of another length came");
    post_receive(host, session);
    return on_message(host, session);
  }
  // A server goes on when its READ or WRITE is done.
  if (wc.opcode == IBV_WC_SEND) return;
  if (wc.opcode == IBV_WC_RDMA_WRITE) pings_++;
  session.is_writing = wc.opcode == IBV_WC_RDMA_READ;
  post_send(host, session, IBV_WR_SEND, kToSend, sizeof(Advertisement));
}

void Rping::on_message(Host& host, Session& session) {
  if (config_.address) {
    if (session.is_writing) return check(host, session);
    session.is_writing = true;
    return advertise(host, session, sink());
  }
  const auto& there = *reinterpret_cast<const Advertisement*>(session.memory.data() + kReceived);
  if (there.size > config_.size) return leave(host, session, "a client's `size` is larger than the server's");
  const std::uint8_t* text = session.memory.data() + sink();
  const std::uint64_t bytes =
      session.is_writing ? std::find(text, text + config_.size - 1, 0) - text + 1 : there.size.get();
  post_send(host, session, session.is_writing ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, sink(), bytes);
}

// The text of rping: a number, then letters, of which each ping begins with another one.
void Rping::ping(Host& host, Session& session) {
  constexpr unsigned kFirst = 'A', kLetters = 'z' - 'A' + 1;
  char* const text = reinterpret_cast<char*>(session.memory.data() + source());
  const int head = std::snprintf(text, config_.size, "rdma-ping-%d: ", static_cast<int>(pings_));
  for (std::uint64_t i = static_cast<std::uint64_t>(head); i < config_.size; i++)
    text[i] = static_cast<char>(kFirst + (pings_ + i - static_cast<std::uint64_t>(head)) % kLetters);
  text[config_.size - 1] = 0;
  session.is_writing = false;
  advertise(host, session, source());
}

void Rping::check(Host& host, Session& session) {
  const std::uint8_t* const memory = session.memory.data();
  if (config_.validate && !std::equal(memory + source(), memory + sink(), memory + sink())) mismatches_++;
  pings_++;
  if (pings_ < static_cast<std::uint64_t>(config_.count)) return ping(host, session);
  host.connections().disconnect(session.id);
}

void Rping::advertise(Host& host, Session& session, std::uint64_t buffer) {
  auto& here = *reinterpret_cast<Advertisement*>(session.memory.data() + kToSend);
  here.address = session.mapping.address + buffer;
  here.rkey = session.mapping.key;
  here.size = config_.size;
  post_send(host, session, IBV_WR_SEND, kToSend, sizeof here);
}

void Rping::post_receive(Host& host, Session& session) {
  ibv_sge sge{session.mapping.address + kReceived, sizeof(Advertisement), session.mapping.key};
  ibv_recv_wr request{0, nullptr, &sge, 1};
  host.post_receive(*session.qp, &request, nullptr);
}

void Rping::post_send(Host& host, Session& session, ibv_wr_opcode opcode, std::uint64_t offset, std::uint64_t bytes) {
  ibv_sge sge{session.mapping.address + offset, static_cast<std::uint32_t>(bytes), session.mapping.key};
  ibv_send_wr request{};
  request.opcode = opcode;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  const auto& there = *reinterpret_cast<const Advertisement*>(session.memory.data() + kReceived);
  request.wr.rdma.remote_addr = there.address;
  request.wr.rdma.rkey = static_cast<std::uint32_t>(there.rkey);
  host.post_send(*session.qp, &request, nullptr);
}

void Rping::leave(Host& host, Session& session, const char* error) {
  note_error(error);
  host.connections().disconnect(session.id);
}

constexpr Example kRpingExamples[] = {{"a server, until its client goes", "port: 7174\n"},
                                      {"its client", "address: 10.0.0.2\ncount: 10\nsize: 1500\n"},
                                      {nullptr, nullptr}};

}  // namespace
}  // namespace rocebox::nic_model

rocebox::Component rocebox::rping_workload() {
  return workload_component<nic_model::OneHostOptions<nic_model::Rping, nic_model::RpingConfig>>(
      "rping", "rdmacm-utils' rping: connects by RDMA CM, and a client's buffer is read and written back by its server",
      nic_model::kRpingExamples);
}
