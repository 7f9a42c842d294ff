// SPDX-License-Identifier: BSD-3-Clause
// Core: what the parts of one NIC share: its memory, queue pairs, completions and counters.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "nic_model/config.h"
#include "nic_model/counters.h"
#include "nic_model/memory/memory.h"
#include "nic_model/rate/loopback.h"
#include "nic_model/rate/observer.h"
#include "nic_model/rate/transmitter.h"
#include "nic_model/transport/multicast.h"
#include "nic_model/transport/qp.h"
#include "nic_model/transport/received.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::nic_model {

/// What a timer of the NIC is for: the upper 8 bits of its tag; the lower ones say whose it is.
enum class TimerOf : std::uint8_t {
  kTransmitter,
  kRetransmission,
  kRnr,
  kNeighbors,
  kPace,
  kProgram,
  kConnection,
  kObserver,
  kPause,
  kLoopback,
  kCompletion,
  kDpa,
  kResponsePace,
  kReads
};
constexpr std::uint64_t timer_tag(TimerOf of, std::uint64_t whose = 0) {
  return static_cast<std::uint64_t>(of) << 56 | whose;
}
constexpr TimerOf timer_of(std::uint64_t tag) { return static_cast<TimerOf>(tag >> 56); }
constexpr std::uint64_t timer_whose(std::uint64_t tag) { return tag & ((std::uint64_t{1} << 56) - 1); }

class RttProber;
class PeerMessages;

/// An asynchronous event (IB specification, 11.6.3), for all programs of the host.
struct AsyncEvent {
  ibv_event_type type;
  std::uint32_t qpn;  ///< or the number of the CQ, SRQ or port
};

class Core {
 public:
  Core(const NicConfig& configuration, Stats& stats)
      : config(configuration),
        up(configuration.up),
        count(stats),
        transmitter(configuration),
        loopback(configuration.loopback) {}

  /// The queue pair of that number; null when there is none.
  Qp* find(std::uint32_t qpn) const {
    const std::uint32_t index = qpn - config.first_qpn;
    return index < qps.size() ? qps[index].get() : nullptr;
  }
  /// Of a queue pair that is made or reset.
  QpAttributes new_attributes() const;
  /// The entropy of a flow: from 0xC000 on, by both queue pairs (config.h, Entropy).
  std::uint16_t udp_source_port(std::uint32_t qpn, std::uint32_t destination_qp) const;
  /// The queue pair has something to send, or may have.
  void wake(Context& context, Qp& qp) {
    if (!qp.is_ready) wake_idle(context, qp);
  }

  /// Completes a send work request; a successful one only where its sender asked for that.
  void complete_send(Context& context, Qp& qp, const SendWork& work, ibv_wc_status status);
  void complete_receive(Context& context, Qp& qp, ReceiveWork& work, const Received& what, ibv_wc_status status);
  /// A CQE that tells nothing but that it is there.
  void complete_nothing(Context& context, CompletionQueue& cq);
  /// The queue pair goes to the error state: all that is posted is flushed.
  void fail(Context& context, Qp& qp);
  /// The same after an error of its send queue, which is all of an unreliable one's that stops: it goes to SQE
  /// (10.3.1), and receives on.
  void fail_sending(Context& context, Qp& qp);
  void tell(AsyncEvent event) { events.push_back(event); }
  /// Queue pairs whose completions found no room fail (IB specification, 11.6.3.3), once the call's work is done.
  void fail_overrun(Context& context) {
    if (!overrun_.empty()) [[unlikely]]
      fail_those(context);
  }
  /// The queue pair begins anew, or another one has its number.
  void forget_overrun(const Qp& qp) { std::erase(overrun_, qp.number()); }

  /// Who sees what packets tell from now on; null: nobody. It outlives this.
  void observe_by(Observer* by) {
    observer = by;
    observed_ = by ? by->events() : 0;
  }
  /// Tells the observer, when it wants events of that kind; the event's number is the queue pair's.
  void observe(Context& context, const Qp& qp, QpEvent& event) {
    if (observed_ & event_bit(event.kind)) [[unlikely]]
      tell_observer(context, qp, event);
  }
  bool is_observed(QpEventKind kind) const { return observed_ & event_bit(kind); }

  /// Brings nearer what each packet needs of this. Changes nothing.
  void prefetch() const {
    prefetch_far_lines(this, &transmitter);
    transmitter.prefetch_itself();
    prefetch_far_lines(&qps, &observed_ + 1);
  }

  /// A packet with headers for `qp`; the caller writes extended headers and payload, and ends with finish(). Empty: the
  /// pool is dry, which is counted.
  PacketPtr make(Context& context, const Headers& headers, const PacketFields& fields);
  void finish(Packet packet);
  /// Whether `packet` has its payload's bytes.
  static bool has_payload(Packet packet) {
    return packet.meta().payload_offset + packet.meta().payload_bytes <= packet.size();
  }

  const NicConfig& config;
  bool up;
  std::uint64_t entropy_seed = 0;  ///< drawn before the first queue pair is made
  Counters count;
  Memory memory;
  Transmitter transmitter;
  Loopback loopback;
  MulticastGroups groups;
  Observer* observer = nullptr;
  RttProber* rtt = nullptr;
  PeerMessages* peer_messages = nullptr;
  Timer observer_timer{timer_tag(TimerOf::kObserver)};
  std::vector<std::unique_ptr<Qp>> qps;  // by number
  std::vector<std::unique_ptr<CompletionQueue>> cqs;
  std::vector<std::unique_ptr<ReceiveQueue>> shared_queues;
  std::vector<AsyncEvent> events;           // not told yet
  std::vector<CompletionQueue*> completed;  // that may have an event for their host
 private:
  void wake_idle(Context& context, Qp& qp);
  mlx5_cqe64* next_cqe(CompletionQueue& cq);
  mlx5_cqe64* next_cqe(CompletionQueue& cq, Qp& qp);
  void publish(Context& context, CompletionQueue& cq, mlx5_cqe64* cqe, std::uint8_t opcode, bool solicited);
  void fail_those(Context& context);
  void tell_observer(Context& context, const Qp& qp, QpEvent& event);

  std::uint32_t observed_ = 0;          // bits of event kinds
  std::vector<std::uint32_t> overrun_;  // queue pairs that are to fail, by number
};

}  // namespace rocebox::nic_model
