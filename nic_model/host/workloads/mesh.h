// SPDX-License-Identifier: BSD-3-Clause
// Mesh: hosts that send each other messages over reliable connections, made when two of them first speak or before.
// What collectives and lists of flows are made of.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nic_model/host/host.h"
#include "nic_model/host/workloads/recovery_options.h"
#include "runtime/kernel/workload.h"

namespace rocebox::nic_model {

/// How connections of a mesh are made.
struct MeshOptions {
  void fields(Fields& fields);
  std::int64_t mtu = 4096;
  std::int64_t tx_depth = 64;
  std::int64_t retry_cnt = 7, timeout = 14, traffic_class = 0;
  std::uint64_t chunk = std::uint64_t{1} << 30;
  std::int64_t connections = 1;  ///< from one host to another, at most
  bool rdma_cm = false;
  RecoveryOptions recovery{};
};

/// Of flows that begin without regard to each other, as other simulators have them: each has a sender of its own.
inline constexpr std::int64_t kConnectionsOfAPair = 64;

class Mesh {
 public:
  /// Called in the call of the host that has received all of transfer `number`.
  using OnReceived = std::function<void(std::size_t number, Nanos now)>;
  /// Called when has_given_up() has become true, perhaps again.
  using OnFailed = std::function<void(Nanos now)>;

  /// Throws ConfigError when a host has no NIC.
  Mesh(std::span<const WorkloadHost> hosts, const MeshOptions& options, OnReceived on_received, OnFailed on_failed);
  ~Mesh();

  std::size_t hosts() const { return endpoints_.size(); }
  /// Runs `what` on a host, in the present instant or, `at` being later, then.
  void call(unsigned host, Nanos at, std::function<void(Nanos now)> what);
  /// Makes the connections by which these pairs of source and destination send, where there are none yet, and calls
  /// `then` once all are there, in a call of some host. Once; no pair: not at all.
  void connect_all(std::span<const std::pair<unsigned, unsigned>> pairs, std::function<void(Nanos now)> then);
  /// Sends `bytes` from a host to another, by a WRITE whose end tells the receiver. Its number: flows()[number].
  std::size_t transfer(unsigned source, unsigned destination, std::uint64_t bytes, Nanos now);

  /// Whether nothing more is to be said to two hosts at once: all connections that were ever needed are there.
  bool is_connected() const { return ready_ == by_number_.size(); }
  std::span<const FlowRecord> flows() const { return flows_; }
  std::uint64_t bytes_received() const { return bytes_received_; }
  /// Of transfers that are under way, too: what receivers' memory holds of them.
  double bytes_placed() const;
  /// Of transfer `number` alone.
  std::uint64_t bytes_placed(std::size_t number) const;
  /// Of all hosts, the transfers that began and ended counted.
  Progress progress() const;
  std::size_t unfinished() const { return unfinished_; }
  /// Whether nothing will happen any more because connections have failed: all that is unfinished went by these, and no
  /// call() is due, nor a connection of connect_all().
  bool has_given_up() const { return failed_ > 0 && lost_ == unfinished_ && calls_ == 0 && awaited_ == 0; }
  /// Transfers of which the receiver's memory does not hold all that it should. None, ever.
  std::uint64_t misplaced() const { return misplaced_; }
  /// Messages that end no transfer to their receiver. None, unless packets were changed and nobody noticed.
  std::uint64_t unexpected() const { return unexpected_; }
  /// Queue pairs that failed, and those that RDMA CM could not connect.
  std::uint64_t failed() const { return failed_; }
  /// What failed, and of several who was the first; empty: nothing did.
  std::string error() const;
  void explain_waiting(Report& report, unsigned lines) const;

 private:
  class Endpoint;
  struct Connection;
  struct Pair {
    std::vector<std::unique_ptr<Connection>> connections;
    std::uint64_t next_place = 0;  // in the receiver's memory
  };
  Connection& make_connection(unsigned source, unsigned destination, Pair& of);
  Connection& connection_for_one_more(unsigned source, unsigned destination, Pair& of);
  void connect_by_call(Connection& connection);
  void connect_by_cm(Connection& connection);
  void became_ready(Host& host, Connection& connection);
  void refused(Host& host, Connection& connection, const char* why);
  void fail(Host& host, Connection& connection, ibv_wc_status status);
  void lose(Connection& connection, Nanos now);
  void look_whether_given_up(Nanos now) {
    if (has_given_up()) on_failed_(now);
  }
  const std::string& name(unsigned host) const;
  void post(Host& host, Connection& connection);
  void received(unsigned host, std::uint32_t number, Nanos now);

  MeshOptions options_;
  OnReceived on_received_;
  OnFailed on_failed_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::map<std::pair<unsigned, unsigned>, Pair> pairs_;  // source, destination
  std::vector<Connection*> by_number_;                   // connections, in the order in which they were begun
  std::size_t ready_ = 0;                                // of these
  std::size_t awaited_ = 0;                              // of connect_all()
  std::function<void(Nanos)> when_connected_;
  std::vector<FlowRecord> flows_;
  std::vector<std::uint64_t> places_;  // of flows_: where in the receiver's memory
  std::vector<Connection*> by_flow_;   // by which it goes
  std::size_t unfinished_ = 0;
  std::size_t lost_ = 0;   // of these: their connections have failed
  std::size_t calls_ = 0;  // that are due
  std::uint64_t bytes_received_ = 0, misplaced_ = 0, unexpected_ = 0, failed_ = 0;
  std::string first_failure_, not_connected_;  // of queue pairs; of connections by RDMA CM
};

}  // namespace rocebox::nic_model
