// SPDX-License-Identifier: BSD-3-Clause
// A queue pair by a plain call from RESET to RTS, as programs do it that know their peer from a side channel.
#pragma once
#include "nic_model/host/host.h"

namespace rocebox::nic_model {

struct Peer {
  roce::IpAddress address{};
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;  ///< the first that it sends
};

struct ConnectOptions {
  std::uint32_t mtu = 1024;
  std::uint32_t access =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  std::uint32_t psn = 0;  ///< the first that this side sends
  std::uint8_t timeout = 14, retry_cnt = 7, rnr_retry = 7, min_rnr_timer = 12, rd_atomic = 16;
  std::uint8_t traffic_class = 0;  ///< of IP
};

/// ibv_modify_qp's three steps. 0, or the first one's errno.
int connect(Host& host, Qp& qp, const Peer& peer, const ConnectOptions& options);

/// The same of a queue pair of datagrams, which knows no peer. `psn` is the first that it sends.
int start_datagrams(Host& host, Qp& qp, std::uint32_t qkey, std::uint32_t psn = 0);

}  // namespace rocebox::nic_model
