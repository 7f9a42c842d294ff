// SPDX-License-Identifier: BSD-3-Clause
// The observer of a NIC: who sees what packets tell of queue pairs, and sets their rates and paths: congestion control
// and other policies (SCR, 4.2, 4.3.1). Without one a NIC asks one bit per packet.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/kernel/kernel.h"
#include "runtime/kernel/report.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::nic_model {

class Core;

enum class QpEventKind : std::uint8_t {
  kTx,          ///< a packet of its requests left
  kRx,          ///< a packet came for it, whatever it is; before anything else is told of it
  kAck,         ///< an ACK of what was sent
  kNack,        ///< a NAK or RNR NAK of what was sent
  kCnp,         ///< a congestion notification
  kRtt,         ///< the answer to request_rtt()
  kTxResponse,  ///< a packet of a response to the peer's READ left
};
constexpr std::uint32_t event_bit(QpEventKind kind) { return 1u << static_cast<unsigned>(kind); }

/// What a NACK says.
enum class NackKind : std::uint8_t {
  kRnr,       ///< no receive request was posted
  kSequence,  ///< packets were lost
  kFatal      ///< the connection ends
};
inline NackKind nack_kind(std::uint8_t syndrome) {
  if (roce::aeth_kind(syndrome) == roce::AethKind::kRnrNak) return NackKind::kRnr;
  const bool lost = roce::aeth_value(syndrome) == static_cast<unsigned>(roce::NakCode::kPsnSequenceError);
  return lost ? NackKind::kSequence : NackKind::kFatal;
}

inline constexpr std::size_t kRttPayloadBytes = 32;
/// What an observer writes of a peer message; with the NIC's header 128 bytes of UDP payload (SCR, 4.3.1).
inline constexpr std::size_t kPeerMessageBytes = 96;
/// Probes of one queue pair that are under way at once: a new one takes the place of the oldest.
inline constexpr std::uint32_t kProbesUnderWay = 8;

/// Times of one probe, each by the clock of the NIC where it was taken; rate/README.md has the packets.
struct RttSample {
  Nanos request_sent = 0, request_received = 0, response_sent = 0, response_received = 0;
  std::uint16_t udp_source_port = 0;                     ///< which path it went
  std::array<std::uint8_t, kRttPayloadBytes> payload{};  ///< what the responder's program wrote
  Nanos rtt() const { return response_received - request_sent; }
  /// Less the time that the responder took, by its own word: nothing before the request came, and not more than all.
  Nanos network_rtt() const {
    const auto there = static_cast<std::uint64_t>(response_sent) - static_cast<std::uint64_t>(request_received);
    return rtt() - std::clamp<Nanos>(static_cast<Nanos>(there), 0, std::max<Nanos>(rtt(), 0));
  }
};

/// A peer's probe that has come, for reading while the observer is called.
struct RttRequest {
  std::uint32_t qpn = 0;                 ///< whom it is for
  std::span<const std::uint8_t> packet;  ///< from its Ethernet header on
  std::size_t udp_offset = 0;            ///< of its UDP header in the packet
  std::size_t sent_offset = 0;           ///< of the time at which it was sent: 8 bytes, ns by the requester's clock
  std::uint8_t hop_limit = 0;            ///< that it came with
};

/// What the answer to a probe is to carry.
struct RttAnswer {
  std::array<std::uint8_t, kRttPayloadBytes> payload{};
  std::uint8_t traffic_class = 0;  ///< of IP; the queue pair's at first
};

struct QpEvent {
  QpEventKind kind = QpEventKind::kTx;
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;              ///< of the packet
  std::uint32_t bytes = 0;            ///< kTx, kTxResponse, kRx: of it on the wire, preamble and gap included
  std::uint16_t udp_source_port = 0;  ///< kTx, kTxResponse, kRx
  std::uint8_t syndrome = 0;          ///< kAck, kNack: of the AETH
  /// kAck, kNack: the peer takes packets out of order, so that a NAK says that one was lost, not all behind it.
  bool places_directly = false;
  const RttSample* rtt = nullptr;  ///< kRtt
};

/// How much of the NIC is in use.
struct NicUse {
  std::uint64_t wire_bytes_sent = 0;    ///< of RoCE's so far, with what each packet takes of the wire besides
  std::uint64_t pcie_bytes_read = 0;    ///< of host memory so far; 0: PCIe is not modelled
  std::uint32_t ready_queue_pairs = 0;  ///< that have something to send
  std::uint32_t staged_bytes = 0;       ///< of packets that were chosen and have not left
};

/// What an observer may do, in its calls.
class Controls {
 public:
  Controls(Context& context, Core& core) : context_(context), core_(core) {}
  Nanos now() const { return context_.now(); }
  /// Bits per second of the port; 0: unlimited.
  std::uint64_t line_rate() const;
  /// RoCE's on the port, as packets were captured.
  std::uint64_t bytes_received() const;
  std::uint64_t bytes_sent() const;
  /// What RoCE's took of the wire so far, with `overhead` for each packet.
  std::uint64_t wire_bytes_received() const;
  /// How long the last read of host memory took; 0: PCIe is not modelled, or nothing was read.
  Nanos pcie_latency() const;
  /// Looks at each queue pair.
  NicUse nic_use() const;
  /// The queue pair's requests leave at most at so many bits per second, frames' overhead counted, from the next packet
  /// on: between kRateMin and the port's rate. 0: as fast as the port takes them. False: there is none of that number.
  bool set_rate(std::uint32_t qpn, double bits_per_second);
  /// 0: unlimited.
  double rate(std::uint32_t qpn) const;
  /// The same of its responses to the peer's READs, which set_rate() leaves alone.
  bool set_response_rate(std::uint32_t qpn, double bits_per_second);
  /// Its path, as switches hash it, from the next packet on. Called at each kTx this is a path for each packet.
  bool set_udp_source_port(std::uint32_t qpn, std::uint16_t port);
  /// Of its packets' IP; 0: there is none of that number.
  std::uint8_t traffic_class(std::uint32_t qpn) const;
  /// Sends a probe to the queue pair's peer, from this UDP port; kRtt brings the answer, if one comes. So many as
  /// kProbesUnderWay may wait for theirs. False: the queue pair has no path, or the port is that of probes.
  bool request_rtt(std::uint32_t qpn, std::uint16_t udp_source_port);
  /// Tells the observer at the queue pair's other end, by a datagram that may get lost. False: there is no path.
  bool send_to_peer(std::uint32_t qpn, std::span<const std::uint8_t, kPeerMessageBytes> message);
  /// Calls Observer::on_timer then, and not at a time given before. kNever: not at all.
  void wake_at(Nanos at);

 private:
  Context& context_;
  Core& core_;
};

/// A pure object: called in its NIC's calls, one at a time. Its state is sized when it is made.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Bits of the kinds that it wants; asked once.
  virtual std::uint32_t events() const = 0;
  /// The queue pair can send from now on: a new one, though the number may have been another's.
  virtual void on_queue_pair(Controls& /*controls*/, std::uint32_t /*qpn*/) {}
  /// It was reset or destroyed, perhaps one that could not send yet, or once more one that was reset before: what is
  /// told of that number next is of another life, which on_queue_pair() begins when it can send.
  virtual void on_queue_pair_gone(std::uint32_t /*qpn*/) {}
  virtual void on_event(Controls& controls, const QpEvent& event) = 0;
  virtual void on_timer(Controls& /*controls*/) {}
  /// A peer's probe came for the queue pair. False: it is not answered.
  virtual bool on_rtt_request(Controls& /*controls*/, const RttRequest& /*request*/, RttAnswer& /*answer*/) {
    return true;
  }
  /// What the peer's observer sent: newer than all that came before. Its contents are anybody's who can forge the
  /// peer's address.
  virtual void on_peer_message(Controls& /*controls*/, std::uint32_t /*qpn*/,
                               std::span<const std::uint8_t, kPeerMessageBytes> /*message*/) {}
  virtual void report(Report& /*report*/) const {}
};

}  // namespace rocebox::nic_model
