// SPDX-License-Identifier: BSD-3-Clause
// Join: how a rank finds the others where each is a process of its own, and how it leaves them. Connections are made by
// RDMA CM; over those to their right neighbours ranks pass on who sends what; who has nothing to do any more says
// goodbye, and stays as long as others have not.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>

#include "kernels/allgather/host/link.h"
#include "runtime/kernel/report.h"

namespace rocebox::allgather {

class Rank;

class Join {
 public:
  explicit Join(Rank& rank) : rank_(rank) {}

  // In calls of the host.

  /// All queue pairs of this side are made.
  void begin(std::uint32_t program);
  /// All collectives have ended.
  void leave();
  void on_event(const nic_model::ConnectionEvent& event);
  /// kMember and kGoodbye.
  void on_message(Link& link, const ControlMessage& message);
  /// The peer has received it. False: it is none of this object's.
  bool on_done(Link& link, const Link::Work& work);
  /// A work request of the connection has failed. True: that was to be expected.
  bool on_failure(Link& link);
  /// Whether nothing holds the process any more.
  void look_at_goodbyes();
  void on_timer();

  void explain_waiting(Report& report) const;

 private:
  enum class State : std::uint8_t { kConnects, kTellsMembers, kRuns, kLeaves, kLeft, kFailed };
  template <class Each>
  void each_link(Each&& each) const;
  bool is_active(const Link& link) const;
  void connect_missing();
  void accept(const nic_model::ConnectionEvent& event);
  void on_connected(Link& link);
  void send_right(const ControlMessage& message);
  void look_at_members();
  void end();
  void fail(const std::string& why);
  std::string missing() const;

  Rank& rank_;
  State state_ = State::kConnects;
  std::uint32_t program_ = 0;
  std::unordered_map<nic_model::ConnectionId, Link*> connections_;  // asked for or accepted
  std::optional<unsigned> disagrees_;                               // a rank with other options
  Nanos deadline_ = 0;
};

}  // namespace rocebox::allgather
