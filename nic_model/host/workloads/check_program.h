// SPDX-License-Identifier: BSD-3-Clause
// verbs_check as a program of a host: connections of RDMA CM over which two hosts agree on cases, one after another.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "nic_model/host/workloads/check_config.h"
#include "nic_model/host/workloads/programs.h"
#include "runtime/kernel/workload.h"

namespace rocebox::nic_model::check {

inline constexpr unsigned kControlDepth =
    8;  // messages of the control connection that may be on their way, of each side
inline constexpr unsigned kSettleSteps = 10;
/// Seconds for which a client asks again whose numbers the server still has from before.
inline constexpr unsigned kStaleTries = 10;
/// Cases that a report shows; a persistent server counts the others.
inline constexpr std::size_t kRowsMax = 1024;

/// A connection, and the case that goes on.
struct Session {
  ConnectionId id = 0;
  roce::IpAddress remote{};
  Qp* qp = nullptr;
  std::uint32_t key = 0;
  std::array<Message, 2 * kControlDepth> memory{};  // received, and to be sent
  std::uint64_t sent = 0, acknowledged = 0;         // messages
  bool is_over = false;
  std::size_t next_case = 0;
  std::unique_ptr<Side> side;
  Message done{};  // of the requester, while this side settles
  unsigned settle_steps = 0;
  Timer settle_timer;
};

/// A case that is over.
struct Row {
  Case which;
  std::uint32_t completed = 0;
  Counts counts;
  ibv_wc_status status = IBV_WC_SUCCESS;
};

class VerbsCheck final : public ClientOrServer {
 public:
  /// Throws ConfigError when the host has no NIC, or one whose packets have no bytes.
  VerbsCheck(const WorkloadHost& on, const Config& config);

  void explain_waiting(Report& report, unsigned) const override {
    report.text("waits_for", config_.address ? "the server's next message" : "clients");
    report.count("cases", static_cast<std::int64_t>(cases_done_));
  }
  void report(Report& report) const override;

  void on_connection_event(Host& host, const ConnectionEvent& event) override;
  void on_timer(Host& host, Timer& timer) override {
    if (&timer == &connect_again_) return connect(host);
    for (const auto& session : sessions_)
      if (&session->settle_timer == &timer) return settle(host, *session);
  }

 private:
  // verbs_check.cc: connections
  void connect(Host& host) override;
  std::unique_ptr<Session> make(Host& host);
  void release(Host& host, Session& session);
  void drop_side(Host& host, Session& session);
  Session* find(ConnectionId id);
  void leave(Host& host, Session& session, const char* error);

  // check_control.cc: what both sides say, and when
  void on_wc(Host& host, const ibv_wc& wc) override;
  void on_side(Host& host, Session& session, const ibv_wc& wc);
  void on_message(Host& host, Session& session, const Message& message);
  void begin(Host& host, Session& session);
  void on_case(Host& host, Session& session, const Message& message);
  void on_ready(Host& host, Session& session, const Message& message);
  void post(Host& host, Session& session);
  void settle(Host& host, Session& session);
  void end_case(Host& host, Session& session, const Message& done, const Message& result);
  Message compose(const Session& session, Message::Kind kind) const;
  void post_receive(Host& host, Session& session, std::uint64_t slot);
  void send(Host& host, Session& session, const Message& message);

  const Config config_;
  const std::vector<Case> cases_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<Row> rows_;  // at most kRowsMax
  std::uint64_t connections_ = 0, cases_done_ = 0, cases_incomplete_ = 0, wrong_ = 0;
  unsigned stale_ = 0;  // rejections of a connection that the server takes for an older one
  Timer connect_again_;
};

}  // namespace rocebox::nic_model::check
