// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/verbs_check.h"

#include <cerrno>

#include "nic_model/host/workloads/check_program.h"

namespace rocebox::nic_model::check {

VerbsCheck::VerbsCheck(const WorkloadHost& on, const Config& config)
    : ClientOrServer(on, {config.address, config.port, 1 << 15, config.recovery, "what verbs_check sends is compared",
                          config.address ? config.mtu : 0}),
      config_(config),
      cases_(config.all_cases()) {
  for (const Case& one : cases_)
    if (one.has_group()) require_source_for(on, one.group, "`group`");
}

void VerbsCheck::report(Report& report) const {
  report.text("role", config_.address ? "client" : "server");
  report.count("connections", static_cast<std::int64_t>(connections_));
  report.count("cases_done", static_cast<std::int64_t>(cases_done_));
  report.count("cases_incomplete", static_cast<std::int64_t>(cases_incomplete_));
  report.count("wrong_messages", static_cast<std::int64_t>(wrong_));
  report.text("error", error_);
  report.table("cases", rows_.size(), [this](Report& r, std::size_t i) {
    const Row& row = rows_[i];
    r.text("transport", kTransports[static_cast<unsigned>(row.which.transport)]);
    r.text("verb", kVerbs[static_cast<unsigned>(row.which.verb)]);
    r.text("requester", row.which.server_requests ? "server" : "client");
    r.text("group", row.which.has_group() ? roce::address_text(row.which.group) : "");
    r.count("size", row.which.size);
    r.count("messages", row.which.messages);
    r.count("completed", row.completed);
    r.count("whole", row.counts.whole);
    r.count("partial", row.counts.partial);
    r.count("missing", row.counts.missing);
    r.count("wrong", row.counts.wrong);
    r.text("status", row.status == IBV_WC_SUCCESS ? "success" : "ibv_wc_status " + std::to_string(row.status));
  });
}

void VerbsCheck::connect(Host& host) {
  std::unique_ptr<Session> session = make(host);
  const int error = !session ? ENOMEM
                             : host.connections().connect(program_, *config_.address, PortSpace::kTcp, port_,
                                                          session->qp, {}, session->id);
  if (error) return end(host, "cannot connect: too many queue pairs or connections");
  session->remote = *config_.address;
  sessions_.push_back(std::move(session));
}

std::unique_ptr<Session> VerbsCheck::make(Host& host) {
  auto session = std::make_unique<Session>();
  const std::uint32_t domain = host.alloc_pd();
  session->key = host.memory().add(domain, session->memory.data(), sizeof session->memory, IBV_ACCESS_LOCAL_WRITE);
  QpInit init;
  init.domain = domain;
  init.send_cq = init.receive_cq = cq_;
  init.capacity = {kControlDepth, kControlDepth, 1, 1, 0};
  session->qp = session->key ? host.create_qp(init) : nullptr;
  if (!session->qp) {
    host.memory().remove(session->key);
    return nullptr;
  }
  config_.recovery.apply(host, *session->qp);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  host.modify_qp(*session->qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  for (unsigned i = 0; i < kControlDepth; i++) post_receive(host, *session, i);
  return session;
}

void VerbsCheck::drop_side(Host& host, Session& session) {
  host.cancel_timer(session.settle_timer);
  if (session.side) session.side->release(host);
  session.side.reset();
}

void VerbsCheck::release(Host& host, Session& session) {
  drop_side(host, session);
  host.destroy_qp(*session.qp);
  host.memory().remove(session.key);
}

Session* VerbsCheck::find(ConnectionId id) {
  for (const auto& session : sessions_)
    if (session->id == id) return session.get();
  return nullptr;
}

void VerbsCheck::on_connection_event(Host& host, const ConnectionEvent& event) {
  steps_++;
  if (event.type == ConnectionEventType::kConnectRequest) {
    std::unique_ptr<Session> session = make(host);
    if (!session || host.connections().accept(event.id, *session->qp) != 0) {
      if (session) release(host, *session);
      host.connections().reject(event.id);
      return;
    }
    session->id = event.id;
    session->remote = event.remote;
    sessions_.push_back(std::move(session));
    return;
  }
  Session* session = find(event.id);
  if (!session) return;
  switch (event.type) {
    case ConnectionEventType::kEstablished:
      connections_++;
      if (config_.address) begin(host, *session);
      return;
    case ConnectionEventType::kDisconnected:
      session->is_over = true;
      drop_side(host, *session);
      if (config_.address && cases_done_ < cases_.size())
        end(host, "the server has disconnected");
      else if (!config_.persistent)
        end(host, "");
      return;
    case ConnectionEventType::kTimewaitExit:
      break;
    default: {
      // Who was here a moment ago with the same numbers is still remembered there (IB specification, 12.4.1).
      if (config_.address && event.type == ConnectionEventType::kRejected &&
          event.status == static_cast<int>(roce::CmReject::kStaleConnection) && stale_++ < kStaleTries) {
        host.arm_timer(program_, connect_again_, host.now() + kSecond);
        break;
      }
      if (is_client()) end(host, why(event));
    }
  }
  release(host, *session);
  std::erase_if(sessions_, [&](const auto& one) { return one.get() == session; });
}

void VerbsCheck::leave(Host& host, Session& session, const char* error) {
  note_error(error);
  session.is_over = true;  // what comes of it now is not looked at
  host.cancel_timer(session.settle_timer);
  host.connections().disconnect(session.id);
}

namespace {

constexpr Example kExamples[] = {
    {"a server, until its client goes", "port: 7175\n"},
    {"its client: every verb of every transport, both ways", "address: 10.0.0.2\n"},
    {"datagrams to a group, sent by either side", "address: 10.0.0.2\ncases: [{transport: UD, group: 239.1.2.3}]\n"},
    {nullptr, nullptr}};

}  // namespace
}  // namespace rocebox::nic_model::check

rocebox::Component rocebox::verbs_check_workload() {
  return workload_component<nic_model::OneHostOptions<nic_model::check::VerbsCheck, nic_model::check::Config>>(
      "verbs_check", "messages of each verb over RC, UC and UD, both ways, every byte of which the receiver compares",
      nic_model::check::kExamples);
}
