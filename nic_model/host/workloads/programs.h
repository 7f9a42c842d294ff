// SPDX-License-Identifier: BSD-3-Clause
// What programs of workloads share: their host, completions, what is to be done in a host's call, servers and clients.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nic_model/host/host.h"
#include "nic_model/host/workloads/recovery_options.h"
#include "runtime/kernel/workload.h"

namespace rocebox::nic_model {

/// The NIC's side towards that host. Throws ConfigError when it has none, or one whose `mtu` is too small for that path
/// MTU (0: for none).
Host& host_of(const WorkloadHost& on, std::int64_t path_mtu = 0);

/// Throws ConfigError for two hosts whose queue pairs would not understand each other: NICs without addresses of one
/// family, of which one sends headers alone or no ICRCs, or, for reliable ones with `recovery`, which recover
/// differently, cannot do so, or send farther ahead than the other keeps. Null: unreliable ones.
void require_peers(const WorkloadHost& one, const WorkloadHost& other, const RecoveryOptions* recovery);
/// The same of each two of them.
void require_all_peers(std::span<const WorkloadHost> hosts, const RecoveryOptions* recovery);
/// Throws ConfigError for a host whose NIC has no address of the family of `destination`, which is, say, `address`.
void require_source_for(const WorkloadHost& on, const roce::IpAddress& destination, std::string_view is);

/// Counts queue pairs that a workload creates on each of its hosts and keeps, when it gets so far: a run that ends
/// before has them counted, too. Throws ConfigError, for the host that lacks most, when a NIC has fewer than all
/// workloads on it so far need.
void plan_queue_pairs(std::span<const WorkloadHost> hosts, std::span<const std::uint64_t> counts);
/// Throws std::runtime_error: a NIC had no queue pair left for what nobody could know before the run.
[[noreturn]] void no_queue_pair_left(const std::string& host, const NicConfig& nic);

/// The traffic class of a workload's packets.
void traffic_class_field(Fields& f, std::int64_t& traffic_class);

/// Calls `each(ibv_wc)` for all that has completed, and arms the queue again.
template <class Each>
void complete_all(Host& host, CompletionQueue& cq, Each&& each) {
  std::array<ibv_wc, 32> completions;
  for (int count; (count = host.poll(cq, completions)) > 0;)
    for (int i = 0; i < count; i++) each(completions[static_cast<std::size_t>(i)]);
  host.arm(cq);
}

/// What is to be done in a host's call, in order: posting is no call's that comes from outside.
class HostTasks {
 public:
  /// In the next call of `program`, which is asked for.
  void add(Host& host, std::uint32_t program, std::function<void(Host&)> what) {
    tasks_.push_back(std::move(what));
    host.start_again(program);
  }
  /// In the program's on_start().
  void run(Host& host) {
    for (auto& one : std::exchange(tasks_, {})) one(host);
  }

 private:
  std::vector<std::function<void(Host&)>> tasks_;
};

/// A program on one host that listens as a server, or connects to one, by RDMA CM.
class ClientOrServer : public Workload, public HostProgram {
 public:
  void start(Nanos) final {
    is_due_ = true;
    host_.start_again(program_);
  }
  bool finished() const final { return finished_; }
  Progress progress() const final {
    Progress sum = host_.progress(program_, device());
    sum.add(steps_, 0);
    return sum;
  }
  std::span<const FlowRecord> flows() const final { return {}; }
  void on_start(Host& host) final;
  void on_completion(Host& host, CompletionQueue& cq) final {
    complete_all(host, cq, [&](const ibv_wc& wc) { on_wc(host, wc); });
  }

 protected:
  struct Ends {
    const std::optional<roce::IpAddress>& server;  ///< none: be one
    std::int64_t port;
    std::uint32_t cq_entries;
    const RecoveryOptions& recovery;  ///< of its queue pairs
    const char* compares;             ///< what a NIC without bytes could not do, for the message; null: nothing
    std::int64_t path_mtu = 0;        ///< that its queue pairs are to have; 0: any
  };
  /// Throws ConfigError.
  ClientOrServer(const WorkloadHost& on, const Ends& ends);

  /// Begins a client's work.
  virtual void connect(Host& host) = 0;
  virtual void on_wc(Host& host, const ibv_wc& wc) = 0;
  /// Its device program, where it has one.
  virtual const dpa::Process* device() const { return nullptr; }

  bool is_client() const { return is_client_; }
  /// Of an event that says that a connection was not made.
  static std::string why(const ConnectionEvent& event);
  /// The first error stays.
  void note_error(std::string_view error) {
    if (error_.empty()) error_ = error;
  }
  /// Has finished, once; `error` empty: as it should.
  void end(Host& host, std::string_view error);

  Host& host_;
  const std::uint16_t port_;
  std::uint32_t program_ = 0;
  CompletionQueue* cq_ = nullptr;
  std::uint64_t steps_ = 0;
  std::string error_;

 private:
  const bool is_client_;
  const std::uint32_t cq_entries_;
  bool is_due_ = false, finished_ = false;
};

/// What a queue pair that has not done all is in, for people: `not connected`, `waits` or `failed`.
const char* waiting_state(const Qp& qp);
/// A completion's status by verbs' name, without its IBV_WC_.
const char* status_name(ibv_wc_status status);
/// The same of what waits for people to see; nothing where nothing has failed.
const char* failed_status(ibv_wc_status status);
/// Of what a workload calls its error: whose queue pair failed, and with what.
std::string failed_pair_text(const std::string& host, const Qp& qp, const std::string& peer, ibv_wc_status status);
/// How many of something failed, and of several who was the first.
std::string failures_text(std::uint64_t count, std::string_view what, const std::string& first);

/// The times of messages as perftest has them: the least, the median, 99%, 99.9%, the most. Nothing where there are
/// none.
void report_times(Report& report, std::span<const Nanos> times);

/// Options of a workload W that runs on one host, made of a Config.
template <class W, class Config>
class OneHostOptions final : public WorkloadOptions {
 public:
  void fields(Fields& fields) override { config_.fields(fields); }
  Range<std::int64_t> hosts() const override { return {1, 1}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t) const override {
    return std::make_unique<W>(hosts[0], config_);
  }
  std::uint32_t packets_in_flight() const override { return config_.recovery.packets_in_flight(); }

 private:
  Config config_;
};

}  // namespace rocebox::nic_model
