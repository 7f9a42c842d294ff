// SPDX-License-Identifier: BSD-3-Clause
// ReliableQueuePair: both directions of reliable messages over one queue pair of SDR.
#pragma once
#include "kernels/sdr/reliability/reliable_receiver.h"
#include "kernels/sdr/reliability/reliable_sender.h"

namespace rocebox::sdr {

class ReliableQueuePair final : public QueuePairListener {
 public:
  /// Listens to `qp`, which nothing else is to send by or receive from, and outlives this.
  ReliableQueuePair(QueuePair& qp, const ReliableOptions& options, ReliableSender::OnOver on_sent,
                    ReliableReceiver::OnOver on_received)
      : sender(qp, options, std::move(on_sent)), receiver(qp, options, std::move(on_received)) {
    qp.set_listener(this);
  }

  void on_clear_to_send(nic_model::Host& host) override { sender.pump(host); }
  void on_sent(nic_model::Host& host) override { sender.pump(host); }
  void on_datagram(nic_model::Host& host, std::span<const std::uint8_t> bytes) override {
    const std::optional<Datagram> datagram = decode(bytes);
    if (!datagram) return void(refused_++);
    if (datagram->kind == Datagram::Kind::kProbe)
      receiver.on_datagram(host, *datagram);
    else
      sender.on_datagram(host, *datagram);
  }
  /// Datagrams that said nothing.
  std::uint64_t refused() const { return refused_; }

  ReliableSender sender;
  ReliableReceiver receiver;

 private:
  std::uint64_t refused_ = 0;
};

}  // namespace rocebox::sdr
