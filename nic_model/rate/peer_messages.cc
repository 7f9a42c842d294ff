// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/peer_messages.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "nic_model/rate/datagram.h"

namespace rocebox::nic_model {
namespace {

constexpr std::array<std::uint8_t, 4> kPeerMagic = {'R', 'B', 'P', 'M'};
constexpr std::uint8_t kPeerVersion = 1;

struct PeerMessage {
  std::uint8_t magic[4];
  std::uint8_t version;
  std::uint8_t zero[3];
  roce::Be32 destination_qp, source_qp;
  roce::Be64 sent, reserved;
  std::uint8_t contents[kPeerMessageBytes];
};
static_assert(sizeof(PeerMessage) == 128);

}  // namespace

PeerMessages::PeerMessages(Core& core, Stats& stats)
    : core_(core),
      sent_(stats.counter("peer_messages_sent", "messages to observers at other ends of queue pairs")),
      received_(stats.counter("peer_messages_received", "messages of those that this NIC's observer was told")),
      drop_damaged_(stats.counter("drop_peer_message_damaged", "such a message with a wrong length, checksum or form")),
      drop_stranger_(stats.counter("drop_peer_message_stranger",
                                   "such a message that is not from the peer of the queue pair that it names")),
      drop_old_(stats.counter("drop_peer_message_old",
                              "such a message that is not newer than one before: doubled, "
                              "replayed or overtaken")),
      drop_unwanted_(stats.counter("drop_peer_message_unwanted", "such a message, and nobody observes this NIC")) {}

bool PeerMessages::send(Context& context, Qp& qp, std::span<const std::uint8_t, kPeerMessageBytes> contents) {
  if (!qp.reaches_a_peer() || !qp.can_receive()) return false;
  PeerMessage message{};
  std::ranges::copy(kPeerMagic, message.magic);
  message.version = kPeerVersion;
  message.destination_qp = qp.attributes.destination_qp;
  message.source_qp = qp.number();
  // Two of one instant are told apart, too.
  qp.peer_message_sent = std::max(static_cast<std::uint64_t>(context.now()), qp.peer_message_sent + 1);
  message.sent = qp.peer_message_sent;
  std::ranges::copy(contents, message.contents);
  if (!send_datagram(context, core_,
                     {qp.attributes.remote, qp.headers.destination_mac(), qp.attributes.traffic_class,
                      qp.attributes.udp_source_port, kPeerMessageUdpPort},
                     {reinterpret_cast<const std::uint8_t*>(&message), sizeof message}))
    return false;
  sent_.add();
  return true;
}

Counter* PeerMessages::on_packet(Context& context, Packet packet) {
  const roce::Udp* udp = udp_of(packet);
  if (!udp || udp->destination_port != kPeerMessageUdpPort) return nullptr;
  if (!is_whole_datagram(packet, *udp, sizeof(PeerMessage))) return &drop_damaged_;
  PeerMessage message;
  std::memcpy(&message, udp + 1, sizeof message);
  if (!std::ranges::equal(message.magic, kPeerMagic) || message.version != kPeerVersion || message.reserved != 0 ||
      std::ranges::any_of(message.zero, [](std::uint8_t byte) { return byte != 0; }))
    return &drop_damaged_;
  Qp* qp = core_.find(static_cast<std::uint32_t>(message.destination_qp));
  if (!qp || !qp->can_receive() || qp->is(IBV_QPT_UD) || roce::addresses(packet).source != qp->attributes.remote ||
      message.source_qp != qp->attributes.destination_qp)
    return &drop_stranger_;
  if (message.sent <= qp->peer_message_seen) return &drop_old_;
  if (!core_.observer) return &drop_unwanted_;
  qp->peer_message_seen = message.sent;
  received_.add();
  Controls controls(context, core_);
  core_.observer->on_peer_message(controls, qp->number(),
                                  std::span<const std::uint8_t, kPeerMessageBytes>(message.contents));
  return &core_.count.answered;
}

}  // namespace rocebox::nic_model
