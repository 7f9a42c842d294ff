// SPDX-License-Identifier: BSD-3-Clause
// Rank: what runs on one host of a team: its workers, its communicators, and who is told of which completion.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/allgather/host/communicator.h"
#include "kernels/allgather/host/join.h"
#include "kernels/allgather/model/round_robin.h"
#include "nic_model/host/workloads/programs.h"

namespace rocebox::allgather {

class Rank final : public nic_model::HostProgram {
 public:
  enum class CqOf : std::uint8_t { kNone, kControl, kSends, kReceives, kCopies };
  enum class TimerOf : std::uint8_t { kCutoff, kWatchdog, kWorker, kPoll, kJoin, kPaths };

  Rank(Team& team, unsigned number, nic_model::Host& host, const std::string& host_name);

  Team& team() const { return team_; }
  unsigned number() const { return number_; }
  nic_model::Host& host() const { return host_; }
  std::uint32_t domain() const { return domain_; }
  const roce::IpAddress& address() const { return address_; }
  Registrations& registrations() { return *registrations_; }
  /// receive: dpa: what its workers run in.
  nic_model::dpa::Process& process() { return *process_; }
  Communicator& communicator(unsigned number) { return *communicators_[number]; }
  const Communicator& communicator(unsigned number) const { return *communicators_[number]; }
  unsigned communicators() const { return static_cast<unsigned>(communicators_.size()); }

  /// Runs `what` in a call of the host.
  void run(std::function<void(nic_model::Host&)> what) { tasks_.add(host_, program_, std::move(what)); }
  /// All queue pairs of this side; in a call of the host.
  void make();
  /// Connects them to those of the others, which are made, and tells the team when the ways to all are known, or cannot
  /// be; in a call of the host.
  void connect();
  /// Where ranks are in processes of their own: finds the others; in a call of the host.
  void join();
  void leave() { join_->leave(); }
  void explain_waiting(Report& report) const {
    if (join_) join_->explain_waiting(report);
  }
  /// Of all communicators' subgroups, in order.
  std::vector<std::uint32_t> sending_qpns() const;

  // For its communicators.

  nic_model::CompletionQueue* create_cq(std::uint32_t entries, Subgroup& subgroup, CqOf use);
  nic_model::Qp* create_qp(const nic_model::QpInit& init);
  /// Others took them, whose number nobody knew before the run.
  [[noreturn]] void no_queue_pair_left() const;
  void add_link(Link& link) { links_[link.qp->number()] = &link; }
  void arm(Timer& timer, const Communicator& communicator, unsigned slot, TimerOf use, Nanos after);
  void arm_join(Nanos at);
  void cancel_join() { host_.cancel_timer(join_timer_); }
  /// Whether it has stopped, which it does when it is to stop at `at`.
  bool stops(StopAt at);
  bool has_stopped() const { return has_stopped_; }

  Progress progress() const { return host_.progress(program_, process_); }

  TeamCounters count;

  // HostProgram.
  void on_start(nic_model::Host& host) override { tasks_.run(host); }
  void on_completion(nic_model::Host& host, nic_model::CompletionQueue& cq) override;
  void on_timer(nic_model::Host& host, Timer& timer) override;
  void on_connection_event(nic_model::Host& host, const nic_model::ConnectionEvent& event) override;

 private:
  // A thread that receives: queues that it looks at in turn.
  struct Worker {
    RoundRobin turns;
    std::vector<Subgroup*> subgroups;  // by the queue's number there
    Timer timer;
    bool busy = false;
  };
  struct CqUse {
    CqOf use = CqOf::kNone;
    Subgroup* subgroup = nullptr;
    unsigned worker = 0, queue = 0;  // of kReceives
  };
  void look_for_paths();
  void work(unsigned worker);
  void on_control(const ibv_wc& wc);
  void on_message(const ibv_wc& wc, Link& link);
  void post_control_receive(std::uint64_t place);

  Team& team_;
  const unsigned number_;
  nic_model::Host& host_;
  const std::string host_name_;
  std::uint32_t program_ = 0, domain_ = 0, control_key_ = 0;
  roce::IpAddress address_{};
  nic_model::dpa::Process* process_ = nullptr;
  std::unique_ptr<Registrations> registrations_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unordered_map<std::uint32_t, CqUse> cqs_;
  std::unordered_map<std::uint32_t, Link*> links_;  // by the queue pair's number
  std::vector<ControlMessage> messages_;            // that control messages are received into
  nic_model::CompletionQueue* control_cq_ = nullptr;
  nic_model::CompletionQueue* send_cq_ = nullptr;
  nic_model::ReceiveQueue* control_receives_ = nullptr;
  std::optional<Join> join_;  // ranks in processes of their own
  Timer join_timer_, paths_timer_;
  Nanos look_again_ = kMicrosecond;  // for ways to others; longer each time
  nic_model::HostTasks tasks_;
  unsigned subgroups_made_ = 0;
  bool has_stopped_ = false;
};

}  // namespace rocebox::allgather
