// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/ucmatose.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include "nic_model/host/workloads/programs.h"

namespace rocebox::nic_model::ucmatose {

struct Config {
  std::optional<roce::IpAddress> address;
  std::int64_t port = 7471, connections = 1, message_count = 10;
  std::uint64_t message_size = 100;
  RecoveryOptions recovery;

  void fields(Fields& f) {
    f.address("address", address, Presence::kOptional, "server to connect to, as a client; left out: be one");
    f.integer("port", port, {1, 65535}, "port of RDMA CM");
    f.integer("connections", connections, {1, 1024}, "connections at once; both sides say the same");
    f.integer("message_count", message_count, {0, 4096}, "messages of each connection, there and back");
    f.bytes("message_size", message_size, {1, 1 << 20}, "bytes of a message; both sides say the same");
    recovery.fields(f);
  }
};

/// One connection, of either side. All messages lie in the same place: their contents are nothing, as in the original.
struct Node {
  ConnectionId id = 0;
  Qp* qp = nullptr;
  std::uint32_t key = 0;
  std::vector<std::uint8_t> memory;
  bool is_over = false;
};

class Ucmatose final : public ClientOrServer {
 public:
  Ucmatose(const WorkloadHost& on, const Config& config)
      : ClientOrServer(on, {config.address, config.port, 1 << 15, config.recovery, nullptr}), config_(config) {}

  void explain_waiting(Report& report, unsigned) const override { this->report(report); }
  void report(Report& report) const override {
    report.text("role", config_.address ? "client" : "server");
    report.count("connections", static_cast<std::int64_t>(established_));
    report.count("disconnected", static_cast<std::int64_t>(disconnected_));
    report.count("messages_sent", static_cast<std::int64_t>(sent_));
    report.count("messages_received", static_cast<std::int64_t>(received_));
    report.text("error", error_);
  }

  void on_connection_event(Host& host, const ConnectionEvent& event) override;

 private:
  std::unique_ptr<Node> make(Host& host);
  void release(Host& host, Node& node);
  void accept(Host& host, const ConnectionEvent& event);
  void connect(Host& host) override;
  void on_wc(Host& host, const ibv_wc& wc) override;
  void send_all(Host& host);
  void look(Host& host);
  std::uint64_t connections() const { return static_cast<std::uint64_t>(config_.connections); }
  /// Messages of all connections, one way.
  std::uint64_t messages() const { return connections() * static_cast<std::uint64_t>(config_.message_count); }

  const Config config_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::uint64_t established_ = 0, disconnected_ = 0, sent_ = 0, acknowledged_ = 0, received_ = 0;
  bool has_sent_ = false, disconnects_ = false;
};

void Ucmatose::connect(Host& host) {
  for (std::uint64_t i = 0; i < connections(); i++) {
    std::unique_ptr<Node> node = make(host);
    ConnectionOptions options;
    options.retry_count = 5;  // the original's
    const int error = !node ? ENOMEM
                            : host.connections().connect(program_, *config_.address, PortSpace::kTcp, port_, node->qp,
                                                         options, node->id);
    if (error) return end(host, "cannot connect: too many queue pairs or connections");
    nodes_.push_back(std::move(node));
  }
}

std::unique_ptr<Node> Ucmatose::make(Host& host) {
  auto node = std::make_unique<Node>();
  const std::uint32_t domain = host.alloc_pd();
  if (host.config().header_only) {
    node->key = host.memory().add_without_bytes(domain, 0, config_.message_size, IBV_ACCESS_LOCAL_WRITE);
  } else {
    node->memory.resize(config_.message_size);
    node->key = host.memory().add(domain, node->memory.data(), node->memory.size(), IBV_ACCESS_LOCAL_WRITE);
  }
  const auto depth = static_cast<std::uint32_t>(config_.message_count);
  const std::uint32_t room = std::max(depth, 1u);
  QpInit init;
  init.domain = domain;
  init.send_cq = init.receive_cq = cq_;
  init.capacity = {room, room, 1, 1, 0};
  init.signal_all = true;
  node->qp = node->key ? host.create_qp(init) : nullptr;
  if (!node->qp) {
    host.memory().remove(node->key);
    return nullptr;
  }
  config_.recovery.apply(host, *node->qp);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  host.modify_qp(*node->qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  for (std::uint32_t i = 0; i < depth; i++) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(node->memory.data()), static_cast<std::uint32_t>(config_.message_size),
                node->key};
    ibv_recv_wr request{i, nullptr, &sge, 1};
    host.post_receive(*node->qp, &request, nullptr);
  }
  return node;
}

void Ucmatose::release(Host& host, Node& node) {
  host.destroy_qp(*node.qp);
  host.memory().remove(node.key);
}

void Ucmatose::accept(Host& host, const ConnectionEvent& event) {
  std::unique_ptr<Node> node = nodes_.size() < connections() ? make(host) : nullptr;
  if (!node || host.connections().accept(event.id, *node->qp) != 0) {
    if (node) release(host, *node);
    host.connections().reject(event.id);
    return;
  }
  node->id = event.id;
  nodes_.push_back(std::move(node));
}

void Ucmatose::on_connection_event(Host& host, const ConnectionEvent& event) {
  steps_++;
  if (event.type == ConnectionEventType::kConnectRequest) return accept(host, event);
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& one) { return one->id == event.id; });
  if (found == nodes_.end()) return;
  Node& node = **found;
  switch (event.type) {
    case ConnectionEventType::kEstablished:
      established_++;
      return look(host);
    case ConnectionEventType::kDisconnected:
      node.is_over = true;
      disconnected_++;
      if (received_ < messages()) note_error("disconnected before all messages had come");
      if (disconnected_ == connections()) end(host, "");
      return;
    case ConnectionEventType::kTimewaitExit:
      break;
    default:
      if (is_client()) end(host, why(event));
  }
  release(host, node);
  nodes_.erase(found);
}

void Ucmatose::on_wc(Host& host, const ibv_wc& wc) {
  const auto found =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& one) { return one->qp->number() == wc.qp_num; });
  if (found == nodes_.end() || (*found)->is_over || wc.status == IBV_WC_WR_FLUSH_ERR) return;
  Node& node = **found;
  steps_++;
  if (wc.status != IBV_WC_SUCCESS || (wc.opcode == IBV_WC_RECV && wc.byte_len != config_.message_size)) {
    note_error(wc.status ? "a work request failed" : "a message of another length came");
    host.connections().disconnect(node.id);
    return;
  }
  (wc.opcode == IBV_WC_RECV ? received_ : acknowledged_)++;
  look(host);
}

// The server sends when all are connected, and disconnects when all has come back; the client answers when all has
// come.
void Ucmatose::look(Host& host) {
  if (established_ < connections()) return;
  if (!has_sent_ && (!config_.address || received_ == messages())) send_all(host);
  if (config_.address || disconnects_ || received_ < messages() || acknowledged_ < messages()) return;
  disconnects_ = true;
  for (const auto& node : nodes_) host.connections().disconnect(node->id);
}

void Ucmatose::send_all(Host& host) {
  has_sent_ = true;
  for (const auto& node : nodes_)
    for (std::int64_t i = 0; i < config_.message_count; i++) {
      ibv_sge sge{reinterpret_cast<std::uintptr_t>(node->memory.data()),
                  static_cast<std::uint32_t>(config_.message_size), node->key};
      ibv_send_wr request{};
      request.opcode = IBV_WR_SEND;
      request.sg_list = &sge;
      request.num_sge = 1;
      host.post_send(*node->qp, &request, nullptr);
      sent_++;
    }
}

namespace {

constexpr Example kExamples[] = {{"a server of three connections", "connections: 3\n"},
                                 {"its client", "address: 10.0.0.2\nconnections: 3\n"},
                                 {nullptr, nullptr}};

}  // namespace
}  // namespace rocebox::nic_model::ucmatose

rocebox::Component rocebox::ucmatose_workload() {
  return workload_component<nic_model::OneHostOptions<nic_model::ucmatose::Ucmatose, nic_model::ucmatose::Config>>(
      "ucmatose", "rdmacm-utils' ucmatose: connections by RDMA CM, and messages from the server and back on each",
      nic_model::ucmatose::kExamples);
}
