// SPDX-License-Identifier: BSD-3-Clause
// Gsi: QP1, the general services interface (IB specification, volume 1, 3.9.4, 13.4): a UD queue pair that every NIC
// has and whose datagrams are MADs. It has no work queues: an adapter's agents answer, here the connection manager.
#pragma once
#include <cstdint>
#include <span>

#include "nic_model/core.h"
#include "runtime/roce/mad.h"

namespace rocebox::nic_model {

class Gsi {
 public:
  Gsi(Core& core, Stats& stats);

  /// Why a datagram to QP1 is none that an agent of this NIC reads; null: it is a MAD of the connection manager.
  Counter* check(Packet packet);
  /// Sends a MAD to the QP1 that `headers` lead to. What is lost here, its sender sends again, as from the wire.
  void send(Context& context, const Headers& headers, std::span<const std::uint8_t, roce::kMadBytes> mad);
  /// The way to `remote`, whose next hop is `mac`.
  Headers headers_to(const roce::IpAddress& remote, const roce::Mac& mac) const;
  /// The way back of a packet.
  static Headers headers_back(Packet packet);

 private:
  Core& core_;
  Counter &rx_mads_, &tx_mads_, &drop_mad_;
  std::uint32_t psn_ = 0;
};

}  // namespace rocebox::nic_model
