// SPDX-License-Identifier: BSD-3-Clause
// Team: the ranks of multicast collectives, one on each host: their queue pairs, made and connected, and the
// collectives that an application starts on them. All are in this process, connected as by a side channel; or one is,
// and finds the others by RDMA CM (join.h).
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/allgather/host/options.h"
#include "kernels/allgather/host/registrations.h"
#include "kernels/allgather/model/collective.h"
#include "runtime/kernel/progress.h"
#include "runtime/kernel/workload.h"

namespace rocebox::nic_model {
class Host;
}

namespace rocebox::allgather {

class Rank;

/// One collective: its place among all, and how it is cut.
struct Operation {
  unsigned communicator = 0;
  std::uint32_t sequence = 0;  ///< in its communicator: 0, 1, 2, ... at every rank
  int root = -1;               ///< of a Broadcast; -1: an Allgather
  unsigned chains = 1;
  std::uint64_t block_bytes = 1;
};

/// Whose buffers they are. Called in the calls of the rank's host.
class Application {
 public:
  virtual ~Application() = default;
  /// All ranks can start collectives now.
  virtual void on_connected(Nanos now) = 0;
  /// Ranks in processes of their own: the others cannot be reached, and none ever will start.
  virtual void on_unconnected(const std::string& /*why*/, Nanos /*now*/) {}
  /// After leave(): none of the others needs this process any more.
  virtual void on_left(Nanos /*now*/) {}
  /// The buffer of an operation is the application's again.
  virtual void on_released(unsigned rank, const Operation& operation, End end, Nanos now) = 0;
};

/// What ranks count; sums over all.
struct TeamCounters {
  std::uint64_t datagrams_sent = 0, doorbells = 0, send_completions = 0;
  std::uint64_t chunks = 0, duplicates = 0, out_of_range = 0, other_subgroup = 0, stale = 0, strangers = 0;
  std::uint64_t wrong_length = 0, no_immediate = 0;
  std::uint64_t copies = 0, reads = 0, bytes_read = 0, requests = 0, messages = 0, stale_messages = 0, bad_messages = 0;
  std::uint64_t goodbyes_missing = 0;  // of ranks in processes of their own
  std::uint64_t registration_hits = 0, released_whole = 0, released_failed = 0;
  std::uint64_t staging_slots = 0;
  // Of collectives that ended whole: until the barrier was done, then until all was there, then until the release.
  std::uint64_t barrier_ns = 0, data_ns = 0, handshake_ns = 0;
};

/// What ranks know of each other.
struct Member {
  roce::IpAddress address{};
  std::vector<std::uint32_t> qpns;  ///< that send its chunks, by communicator and subgroup; 0: not known yet
};

class Team {
 public:
  /// `application` outlives it. Throws ConfigError: a host has no NIC, or one without bytes where others have them;
  /// `ranks` has not the host's address. `agreed`: TeamOptions::agreement(), of ranks in processes of their own.
  Team(std::span<const WorkloadHost> hosts, const TeamOptions& options, Application& application,
       std::uint64_t agreed = 0);
  ~Team();

  unsigned ranks() const { return static_cast<unsigned>(ranks_.size()); }
  const TeamOptions& options() const { return options_; }
  bool has_bytes() const { return has_bytes_; }
  /// Whether each rank is a process's own.
  bool is_apart() const { return !options_.ranks.empty(); }
  /// Ranks that are in this process.
  std::span<const unsigned> here() const { return here_; }
  /// Makes all queue pairs and connects them; then Application::on_connected.
  void connect();
  /// Non-blocking: the rank's part of a collective begins in its host's next call, or this one. At every rank the
  /// sequences of a communicator are started in order, `outstanding` of them at once. `buffer` has room for all blocks,
  /// the rank's own in its place; it is the team's until Application::on_released.
  void start(unsigned rank, const Operation& operation, const Buffer& buffer);
  /// Whether it has ended, and how; kNone: it goes on.
  End test(unsigned rank, unsigned communicator, std::uint32_t sequence) const;
  /// Ranks in processes of their own: no collective will be started any more, and all have ended. The process stays
  /// until the others need nothing of it: Application::on_left.
  void leave();
  /// Forgets what was written where in a buffer without bytes.
  void forget_extents(unsigned rank, const Buffer& buffer);
  /// Whether all of that part of a buffer without bytes was written.
  bool covers(unsigned rank, const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes);

  TeamCounters counters() const;
  /// Grows with all that happens.
  Progress progress() const;
  /// One line for each collective that has not ended.
  void explain_waiting(Report& report, unsigned lines) const;

  // For ranks.

  /// All that a rank in this process is connected to can be reached, or is known not to be.
  void on_rank_connected(Nanos now);
  Rank& rank(unsigned number) { return *ranks_[number]; }
  Member& member(unsigned rank) { return members_[rank]; }
  std::uint64_t agreed() const { return agreed_; }
  Application& application() { return application_; }
  void advanced() { progress_++; }

 private:
  void take_place(nic_model::Host& host, const std::string& name);
  void plan_queue_pairs(std::span<const WorkloadHost> hosts) const;
  void connect_here();
  const nic_model::Region* region_of(unsigned rank, const Buffer& buffer);

  const TeamOptions options_;
  Application& application_;
  bool has_bytes_ = true;
  const std::uint64_t agreed_;
  std::vector<std::unique_ptr<Rank>> ranks_;  // null: in another process
  std::vector<unsigned> here_;
  std::vector<Member> members_;
  unsigned made_ = 0, connected_ = 0;
  std::uint64_t progress_ = 0;
};

}  // namespace rocebox::allgather
