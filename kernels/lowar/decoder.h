// SPDX-License-Identifier: BSD-3-Clause
// The decoder (LoWAR, section IV-A, RX path): packets from the link go to the host in order; lost ones are rebuilt from
// repair packets. What has been handed over is in the coding units, what came behind a lost packet in the reordering
// buffer; so a repair packet finds each packet of its block in one of the two, whatever was lost.
//
// State of each stream (received_stream.h). These objects do not know each other:
//   ReceiveSequence   the expected PSN; gaps, duplicates, restarts, announcements; packets counted as the sender counts
//   OrderQueue        data packets, ACKs and repair packets that wait, in slots of the ReorderingBuffer; Patience
//   BlockDecoder      repair: where the coding block begins, its (r, c), its coding units
//   RecoveredPackets  repair: packets that were rebuilt, whose originals may still come
//   Adaptation        losses and messages as measured; what the sender said of (r, c), and what it is asked for
// One of each for the direction; calls go down this list only:
//   Decoder           classifies packets, finds their stream, tells its objects what the far end says
//   Delivery          moves packets through the objects to the host; owns coding units, reordering buffer and timers
//   Rebuilder         XORs a lost packet out of units and buffer; changes neither
//
// A data packet with a right ICRC:
//   1. ReceiveSequence counts the arrival. Of UC, RecoveredPackets may know a late original, whatever its PSN: dropped.
//   2. Adaptation decides on (r, c), if it is time; the Decoder sends its request back.
//   3. If the stream is uncoded, the packet passes, ReceiveSequence follows it, and Adaptation counts gaps as losses.
//      Else ReceiveSequence judges its PSN:
//        expected   hand over (4)
//        ahead      it waits in the OrderQueue
//        before     dropped if RecoveredPackets know it; else it passes behind what waits, and a run of such packets
//                   restarts the sequence
//        far ahead  what waits leaves, and the sequence restarts there
//   4. Hand over: Adaptation counts the packet as come, or as lost if it was rebuilt; BlockDecoder enters its block and
//      XORs it into a unit; ReceiveSequence advances; BlockDecoder leaves a block that is complete.
//   5. Release, while anything waits: what is next in the OrderQueue is handed over (4). Rebuilder tries the repair
//      packets that wait. What cannot be repaired, or has waited for as long as Patience says, is given up: Adaptation
//      counts it as lost, ReceiveSequence goes on behind it, BlockDecoder frees its units. For the rest a timer is
//      armed, which does step 5 again.
//
// A repair packet: BlockDecoder takes over its (r, c); Rebuilder tries it; it waits in the OrderQueue if it may be of
// use later; step 5; ReceiveSequence compares counts with the sender's, and Adaptation learns what was lost unseen.
//
// An announcement: Adaptation, OrderQueue and BlockDecoder learn (r, c); what waits for PSNs before it leaves, and the
// sequence goes on or restarts there; step 5; the counts. A status: the same, but nothing leaves early. A request is
// the encoder's.
#pragma once
#include <array>

#include "kernels/lowar/config.h"
#include "kernels/lowar/counters.h"
#include "kernels/lowar/delivery.h"
#include "kernels/lowar/encoder.h"
#include "kernels/lowar/received_stream.h"
#include "kernels/lowar/stream_table.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::lowar {

class Decoder {
 public:
  /// `host` and `link` are the ports of the two sides; requests that come for it are told to `encoder`.
  Decoder(const Config& config, Stats& stats, Port host, Port link, Encoder& encoder);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  void process(Context& context, Batch& batch);
  void start(Context& context) { delivery_.reserve_timers(context); }
  void on_timer(Context& context, Timer& timer);
  /// LoWAR packets, and data packets, that came over the link; repair packets that wait now are left out.
  std::uint64_t lowar_packets() const;
  std::uint64_t packets() const { return count_.packets.read(); }
  /// Bytes of memory for so many streams, when all are in use.
  static std::size_t stream_bytes(std::uint32_t streams) { return Streams::bytes(streams) + streams * sizeof(Timer); }

 private:
  using Stream = ReceivedStream;
  using Streams = StreamTable<Stream>;

  // decoder.cc: the host's packets.
  roce::Ahead unit_ahead(Packet packet, const ClassifiedPacket& kind);
  void data(Outlet& outlet, const ClassifiedPacket& kind);
  std::uint32_t use_stream(const StreamKey& key, std::uint64_t hash, Nanos now);
  void begin(Stream& stream, std::uint32_t psn, bool responses);
  bool drop_late(Outlet& outlet, Stream& stream, Packet packet);
  void duplicate(Outlet& outlet, Stream& stream, Packet packet);
  void acknowledge(Outlet& outlet, Packet packet);
  void adapt(Outlet& outlet, Stream& stream, const ClassifiedPacket& kind, Packet packet);
  void request(Outlet& outlet, Stream& stream, const ClassifiedPacket& kind, Packet packet);
  // decoder_control.cc: LoWAR's packets.
  void lowar(Outlet& outlet, Packet packet);
  void repair(Outlet& outlet, Packet packet, const RepairHeader& header);
  void negotiate(Outlet& outlet, Packet packet, const NegotiationHeader& header);
  void learn(Stream& stream, const NegotiationHeader& header);
  void announced(Outlet& outlet, Stream& stream, const NegotiationHeader& header);
  void status(Outlet& outlet, Stream& stream, const NegotiationHeader& header);
  void reconcile(Stream& stream, const RepairHeader& header);
  void reconcile(Stream& stream, const NegotiationHeader& header);

  const Config config_;
  const Aim aim_;
  const std::uint32_t reorder_;
  const Port host_, link_;
  Encoder& encoder_;
  DecodeCounters count_;
  Streams streams_;
  Delivery delivery_;
};

}  // namespace rocebox::lowar
