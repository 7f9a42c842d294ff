// SPDX-License-Identifier: BSD-3-Clause
// What a host of nic_fuzz.cc knows of its connections by RDMA CM, and which events may therefore come.
#pragma once
#include <algorithm>
#include <vector>

#include "nic_model/host/host.h"
#include "tests/fuzz/fuzz.h"

namespace rocebox::fuzz::nic_bed {

inline constexpr std::size_t kAskedMax = 24;
inline constexpr std::uint16_t kPorts = 3;  // numbered from 1

class Connections {
 public:
  enum class Stand : std::uint8_t { kAsked, kRequested, kAccepted, kEstablished, kReleased, kDisconnected, kOver };
  struct Connection {
    nic_model::ConnectionId id = 0;
    nic_model::PortSpace space = nic_model::PortSpace::kTcp;
    Stand stand = Stand::kAsked;
    bool is_destroyed = false;
    unsigned pair = 0;       ///< whose queue pair it has, from kAsked or kAccepted on
    std::uint32_t life = 0;  ///< of that one
    bool is_tcp() const { return space == nic_model::PortSpace::kTcp; }
    bool is_known() const { return !is_destroyed && stand != Stand::kOver; }
  };

  /// `remote` is asked for a connection with `qp`.
  void connect(nic_model::Host& host, std::uint32_t program, const roce::IpAddress& remote, std::uint16_t port,
               nic_model::Qp& qp, unsigned pair, std::uint32_t life, const nic_model::ConnectionOptions& options) {
    if (asked_ >= kAskedMax) return;
    Connection one;
    one.space = qp.is(IBV_QPT_UD) ? nic_model::PortSpace::kUdp : nic_model::PortSpace::kTcp;
    one.pair = pair, one.life = life;
    if (host.connections().connect(program, remote, one.space, port, &qp, options, one.id) != 0) return;
    require(!find(one.id), "an identifier is of one connection");
    asked_++;
    all_.push_back(one);
  }
  void accept(nic_model::Host& host, Connection& one, nic_model::Qp& qp, unsigned pair, std::uint32_t life,
              const nic_model::ConnectionOptions& options) {
    const int error = host.connections().accept(one.id, qp, options);
    if (one.is_tcp() && !one.is_destroyed)
      require((error == ENOENT) == (one.stand == Stand::kOver), "what is over is unknown, and nothing else");
    if (error) return;
    require(one.stand == Stand::kRequested, "a request is accepted once");
    one.stand = one.is_tcp() ? Stand::kAccepted : Stand::kOver;
    one.pair = pair, one.life = life;
  }
  void reject(nic_model::Host& host, Connection& one, std::span<const std::uint8_t> private_data) {
    if (host.connections().reject(one.id, private_data) != 0) return;
    require(one.stand == Stand::kRequested || one.is_destroyed, "a request is rejected");
    one.stand = Stand::kOver;
  }
  void disconnect(nic_model::Host& host, Connection& one) {
    if (host.connections().disconnect(one.id) != 0) return;
    require(one.stand == Stand::kEstablished || one.stand == Stand::kAccepted || one.is_destroyed,
            "a connection is ended");
    one.stand = Stand::kReleased;
  }
  void destroy(nic_model::Host& host, Connection& one) {
    const int error = host.connections().destroy(one.id);
    require(!one.is_known() || error == 0, "what is not over can be destroyed");
    one.is_destroyed = true;
  }
  void destroy_all(nic_model::Host& host) {
    for (Connection& one : all_) destroy(host, one);
    for (const auto space : {nic_model::PortSpace::kTcp, nic_model::PortSpace::kUdp})
      for (std::uint16_t port = 1; port <= kPorts; port++) host.connections().close(space, port);
  }

  /// `event` comes in its turn; whose it is.
  Connection& told(const nic_model::ConnectionEvent& event) {
    using Type = nic_model::ConnectionEventType;
    Connection* one = find(event.id);
    if (event.type == Type::kConnectRequest) {
      require(!one || !one->is_known(), "a request is told once");
      Connection request;
      request.id = event.id, request.space = event.space, request.stand = Stand::kRequested;
      all_.push_back(request);
      return all_.back();
    }
    require(one != nullptr && !one->is_destroyed, "an event is of a connection that the host has");
    require(one->space == event.space, "a connection keeps its service");
    switch (event.type) {
      case Type::kConnectRequest:
        break;
      case Type::kEstablished:
        require(one->stand == Stand::kAsked || one->stand == Stand::kAccepted, "it is established once");
        one->stand = one->is_tcp() ? Stand::kEstablished : Stand::kOver;
        break;
      case Type::kConnectError:
        require(one->stand == Stand::kAsked, "who asks has a queue pair that cannot be connected");
        one->stand = Stand::kOver;
        break;
      case Type::kUnreachable:
        require(one->stand == Stand::kAsked || one->stand == Stand::kAccepted, "somebody was waited for");
        one->stand = Stand::kOver;
        break;
      case Type::kRejected:
        require(one->stand <= Stand::kAccepted, "what is established is no more rejected");
        one->stand = Stand::kOver;
        break;
      case Type::kDisconnected:
        require(one->stand >= Stand::kAccepted && one->stand <= Stand::kReleased, "a connection ends once");
        one->stand = Stand::kDisconnected;
        break;
      case Type::kTimewaitExit:
        require(one->stand == Stand::kDisconnected, "it ends before it is over");
        one->stand = Stand::kOver;
        break;
    }
    return *one;
  }
  Connection* at(unsigned place) { return all_.empty() ? nullptr : &all_[all_.size() - 1 - place % all_.size()]; }

 private:
  Connection* find(nic_model::ConnectionId id) {
    const auto found = std::find_if(all_.rbegin(), all_.rend(), [&](const Connection& one) { return one.id == id; });
    return found == all_.rend() ? nullptr : &*found;
  }

  std::vector<Connection> all_;
  std::size_t asked_ = 0;
};

}  // namespace rocebox::fuzz::nic_bed
