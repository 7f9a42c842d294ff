// SPDX-License-Identifier: BSD-3-Clause
// The two hosts of nic_fuzz.cc: programs that use queue pairs, connect some of them by RDMA CM, and hear of events.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "tests/fuzz/nic_connect.h"
#include "tests/fuzz/nic_pairs.h"

namespace rocebox::fuzz::nic_bed {

class Side final : public nic_model::HostProgram, public Pairs {
 public:
  Side(Bed& bed, unsigned number, const NicSetup& nic, const HostSetup& setup)
      : Pairs(number, setup), bed_(bed), host_(bed.host(number)), number_of_program_(host_.submit(*this)) {
    call([&](nic_model::Host& host) { open(host, number_of_program_, nic.header_only); });
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void on_start(nic_model::Host& host) override {
    if (what_) std::exchange(what_, {})(host);
  }
  void on_completion(nic_model::Host& host, nic_model::CompletionQueue& cq) override {
    const auto watched = std::ranges::find_if(cqs_, [&](const WatchedCq& one) { return one.cq == &cq; });
    require(watched != std::end(cqs_) && watched->is_armed, "an event of a queue that was armed");
    watched->is_armed = false;
    poll_in(host, cq);
    if (setup_.renews_cq && cq.overrun()) return renew_cq(host, static_cast<unsigned>(watched - cqs_));
    watched->arm(host, false);
  }
  void on_async_event(nic_model::Host&, const nic_model::AsyncEvent& event) override {
    switch (event.type) {
      case IBV_EVENT_CQ_ERR:
        return require(std::ranges::any_of(cqs_,
                                           [&](const WatchedCq& one) {
                                             return one.cq && one.cq->number() == event.qpn && one.cq->overrun();
                                           }),
                       "an overrun is of a completion queue that there is");
      case IBV_EVENT_SRQ_LIMIT_REACHED:
        return shared_.told_limit(event.qpn);
      case IBV_EVENT_PORT_ACTIVE:
      case IBV_EVENT_PORT_ERR:
        return require(false, "the port has not changed");
      default:
        return require(find(event.qpn) != nullptr, "an event is of a queue pair that there is");
    }
  }
  void on_connection_event(nic_model::Host& host, const nic_model::ConnectionEvent& event) override {
    require(event.program == number_of_program_, "an event comes to its program");
    connection_events_++;
    knows_nobody_ = knows_nobody_ || event.remote == kNobody;
    const Connections::Connection one = connections_.told(event);
    if (event.type == nic_model::ConnectionEventType::kConnectRequest) {
      if (setup_.accepts) accept(host, *connections_.at(0), static_cast<unsigned>(connection_events_), {});
    } else if (one.is_tcp()) {
      require_moved(one, event);
    }
    if (!setup_.destroys || connection_events_ % 3) return;
    if (Connections::Connection* other = connections_.at(static_cast<unsigned>(connection_events_ / 3)))
      connections_.destroy(host, *other);
  }

  /// Runs `what` in a call of the NIC.
  void call(std::function<void(nic_model::Host&)> what) {
    what_ = std::move(what);
    host_.start_again(number_of_program_);
    bed_.settle();
    require(!what_, "a program is called");
  }
  void poll() {
    call([this](nic_model::Host& host) {
      for (const WatchedCq& one : cqs_) poll_in(host, *one.cq);
    });
  }
  /// Destroys all that there is.
  void end() {
    call([this](nic_model::Host& host) {
      connections_.destroy_all(host);
      close(host);
    });
  }

  /// RDMA CM: each port has a service for connections and one for datagrams, the last one a short backlog.
  void listen(nic_model::Host& host) {
    for (const auto space : {nic_model::PortSpace::kTcp, nic_model::PortSpace::kUdp})
      for (std::uint16_t port = 1; port <= kPorts; port++)
        host.connections().listen(number_of_program_, space, port, port == kPorts ? 1 : 16);
  }
  // `which` says which of the queue pairs that are for it.

  void ask(nic_model::Host& host, const roce::IpAddress& remote, std::uint16_t port, unsigned which,
           const nic_model::ConnectionOptions& options) {
    const unsigned pair = kFirstByCm + which % (kPairs - kFirstByCm);
    if (kKinds[pair].type == IBV_QPT_RC) make_free(host, pair);
    connections_.connect(host, number_of_program_, remote, port, qp(pair), pair, life(pair), options);
  }
  void accept(nic_model::Host& host, Connections::Connection& one, unsigned which,
              const nic_model::ConnectionOptions& options) {
    const unsigned pair = one.is_tcp() ? kFirstByCm + which % 2 : kFirstByCm + 2;
    if (one.is_tcp()) make_free(host, pair);
    connections_.accept(host, one, qp(pair), pair, life(pair), options);
  }
  Connections& connections() { return connections_; }
  /// It has had a connection, or a request for one, with that address.
  bool knows_nobody() const { return knows_nobody_; }
  std::size_t connections_held() { return host_.connections().count(); }

  /// What must hold whenever nothing goes on.
  void require_sound() {
    for (const WatchedCq& one : cqs_)
      require(!one.cq || one.cq->unconsumed() <= one.cq->entries(), "a CQ holds no more than it has room for");
    arena_->require_untouched();
    for (const unsigned number : in_use_) {
      Pair& pair = pairs_[number];
      if (!pair.qp) continue;
      require(pair.qp->rate <= kLineRate && pair.qp->response_rate <= kLineRate, "no rate is above the port's");
      const nic_model::CompletionQueue& cq = *cqs_[cq_of(number)].cq;
      if (cq.overrun() || cq.unconsumed() > 0 || !pair.qp->flushes_requests()) continue;
      require(pair.qp->requester.incomplete() == 0, "a queue that failed has nothing left to complete");
      pair.judge->require_sends_done();
      if (pair.qp->attributes.state == IBV_QPS_ERR) pair.judge->require_receives_done();
    }
  }
  /// Of queue pairs with work none waits for what will never come.
  void require_progress() {
    for (const unsigned pair : in_use_)
      require(host_.is_resolving(qp(pair)) || !qp(pair).can_send() || qp(pair).attributes.state == IBV_QPS_SQD ||
                  !qp(pair).requester.waits_for_nothing(),
              "what is posted goes on");
  }
  void require_told() const {
    for (const WatchedCq& one : cqs_) one.require_told();
  }

  /// All that a packet could change of queue pairs.
  std::vector<std::uint64_t> state() const {
    std::vector<std::uint64_t> all{completions_, connection_events_};
    for (const WatchedCq& one : cqs_) all.push_back(one.cq->produced());
    for (const unsigned pair : in_use_)
      all.insert(all.end(), {std::uint64_t{qp(pair).attributes.state}, qp(pair).responder.expected_psn(),
                             qp(pair).requester.unacknowledged_psn(), qp(pair).requester.next_psn()});
    return all;
  }

 private:
  static constexpr double kLineRate = 1e11;

  // One that has failed can be connected anew.
  void make_free(nic_model::Host& host, unsigned pair) {
    if (qp(pair).attributes.state == IBV_QPS_ERR) reset(host, pair);
  }
  // The queue pair of a connection is where the event says, if its program has left it alone.
  void require_moved(const Connections::Connection& one, const nic_model::ConnectionEvent& event) {
    using Type = nic_model::ConnectionEventType;
    const Pair& pair = pairs_[one.pair];
    if (one.pair < kFirstByCm || !pair.qp || pair.life != one.life) return;
    const nic_model::QpAttributes& attributes = pair.qp->attributes;
    if (event.type == Type::kEstablished)
      require(attributes.destination_qp == event.remote_qpn && attributes.remote == event.remote,
              "a connected queue pair is the remote one's peer");
    if (event.type == Type::kDisconnected)
      require(attributes.state == IBV_QPS_ERR, "the queue pair of a connection that ends fails");
  }

  Bed& bed_;
  nic_model::Host& host_;
  const std::uint32_t number_of_program_;
  std::function<void(nic_model::Host&)> what_;
  Connections connections_;
  std::uint64_t connection_events_ = 0;
  bool knows_nobody_ = false;
};

}  // namespace rocebox::fuzz::nic_bed
