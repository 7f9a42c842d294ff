// SPDX-License-Identifier: BSD-3-Clause
// The decoder (LoWAR, section IV-B2): packets from the link go to the host in order; lost ones are rebuilt from repair
// packets. What has been handed over is in the coding units, what came behind a lost packet in the reordering buffer;
// so a repair packet finds each packet of its block in one of the two, whatever was lost.
#pragma once
#include <array>
#include <optional>

#include "kernels/lowar/coding_units.h"
#include "kernels/lowar/config.h"
#include "kernels/lowar/counters.h"
#include "kernels/lowar/encoder.h"
#include "kernels/lowar/reordering_buffer.h"
#include "kernels/lowar/repair_packet.h"
#include "kernels/lowar/stream_table.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::lowar {

class Decoder {
 public:
  /// `host` and `link` are the ports of the two sides; requests that come for it are told to `encoder`.
  Decoder(const Config& config, Stats& stats, Port host, Port link, Encoder& encoder);
  void process(Context& context, Batch& batch);
  void start(Context& context);
  void on_timer(Context& context, Timer& timer);
  /// LoWAR packets, and data packets, that came over the link; repair packets that wait now are left out.
  std::uint64_t lowar_packets() const;
  std::uint64_t packets() const { return count_.packets.read(); }
  /// Bytes of memory for so many streams, when all are in use.
  static std::size_t stream_bytes(std::uint32_t streams) {
    return StreamTable<Stream>::bytes(streams) + streams * sizeof(Timer);
  }

 private:
  static constexpr std::uint32_t kNoPsn = ~0u;
  struct Recovered {
    std::uint32_t psn = kNoPsn, icrc, until_us;  // the time is modulo 2^32: each stream has many of these
    bool expired(Nanos now) const {
      return until_us - static_cast<std::uint32_t>(now / kMicrosecond) > kHoldMax / kMicrosecond;
    }
  };
  struct Stream : Sequence {     // as handed over to the host
    std::uint32_t base = 0;      // first PSN of the block in the units
    std::uint32_t boundary = 0;  // a block begins here, as a repair packet said
    std::uint32_t old_psn = 0;
    std::uint32_t resume = kNoPsn;  // awaited before old PSNs were taken for a retransmission
    std::uint32_t unannounced = 0;  // the sequence was taken up here before it was announced; kNoPsn: it was announced
    Coding coding, next_coding;     // of the block in the units; of the next
    bool begun = false;
    bool heard = false;    // a LoWAR packet has come: the far end codes this stream
    bool passive = false;  // nothing is kept back: a loss came to nothing before the far end was heard
    bool clocked = false;  // `base` is known
    bool whole = false;    // all that was handed over of the block is in the units
    bool has_boundary = false;
    std::uint8_t repairs_held = 0, recovered_next = 0;
    std::uint8_t old_run = 0;     // old PSNs in a row, up to old_psn
    bool unreliable = false;      // of UC, where nothing is sent again, as a rebuilt packet said
    bool may_repeat = false;      // originals of rebuilt packets may come at any PSN
    std::uint16_t accounted = 0;  // packets that came or count as lost, as the far end counts them: modulo 2^16
    std::uint16_t old_at = 0;     // of these, when old_psn came
    ReorderingBuffer::List held, repairs;
    // Measuring, and asking for another (r, c).
    LossMeter meter;
    MessageMeter messages;
    std::uint32_t first_psn = kNoPsn;  // of the message that is under way, when its first packet came
    std::uint32_t gap_psn = 0;         // of the last gap that was given up; what comes of it late was not lost
    std::uint16_t gap_packets = 0;
    std::uint16_t asked_serial = 0, said_serial = 0;  // of what was asked last; of what next_coding comes from
    std::uint16_t announced_sent = 0;                 // with announced_psn: the last announcement
    std::uint32_t announced_psn = kNoPsn;
    std::uint32_t token = 0;     // the sender's; 0: it heeds no requests
    std::uint32_t said_psn = 0;  // from where on next_coding holds, as the sender said
    Coding asked;
    bool counted = false;  // the far end has said its count
    bool asking = false;
    std::uint8_t asked_times = 0;
    std::uint8_t gaps = 0;              // distances that `spacing_16` and `stall` come from, up to kGapsMin
    Nanos ask_at = 0, asked_first = 0;  // when it is asked again; when this setting was asked for first, 0: never
    Nanos last = 0, spacing_16 = 0;     // arrival; mean distance of arrivals within messages, in 1/16 ns
    std::uint32_t stall = 0;            // longest of late of these distances, in ns
    std::array<Recovered, kRecoveredKept> recovered{};
    std::array<std::uint16_t, kInterleavingMax> units{};
  };
  // Where packets leave: behind a packet of a batch, or from a timer.
  struct Exit {
    Context& context;
    Batch* batch;
    unsigned slot;
    Port out;
    const Named* names = nullptr;  // of the batch's packets
    void deliver(PacketPtr packet) { context.emit(std::move(packet), out, slot); }
  };
  enum class Outcome : std::uint8_t { kUnused, kUsed, kWaits, kShort, kFailed, kFull };
  // What a repair packet needs: the packets in the buffer that it covers, and the unit with those handed over.
  struct Parts {
    std::array<std::uint16_t, kBlockPacketsMax> slots;
    unsigned held = 0, delivered = 0, missing = 0;
    std::uint32_t missing_psn = 0;
    bool usable = true;
    std::uint16_t unit = CodingUnits::kNone;
  };

  // decoder.cc: what comes in.
  roce::Ahead unit_ahead(Packet packet, const Named& named);
  void data(Exit& exit, const Named& named);
  auto release_idle(const Stream* in_use = nullptr) {
    return [this, in_use](Stream& stream) { return &stream != in_use && release(stream); };
  }
  bool release(Stream& stream);
  void begin(Stream& stream, std::uint32_t psn, bool responses);
  void answer(Exit& exit, Packet packet);
  void old(Exit& exit, Stream& stream, Packet packet);
  bool fits(Packet packet) const { return transport_bytes(packet) <= config_.transport_bytes_max(); }
  void hold(Exit& exit, Stream& stream, Packet packet, bool usable);
  bool may_go(const Stream& stream, Packet packet, std::uint32_t psn) const;
  void make_room(Exit& exit, Stream& stream);
  void hold_where_full(Exit& exit, Stream& stream, Packet packet, bool usable);
  void restart(Stream& stream, std::uint32_t psn, std::uint32_t began);
  void wait(Exit& exit, Stream& stream, std::uint32_t psn, ReorderingBuffer::Kind kind);
  void keep(ReorderingBuffer::List& list, PacketPtr packet, std::uint32_t psn, Nanos now, ReorderingBuffer::Kind kind);
  void take_up_again(Stream& stream, std::uint32_t psn);
  bool is_run_of_old(Stream& stream, std::uint32_t psn);
  Recovered* find_recovered(Stream& stream, Packet packet, Nanos now);
  bool came_late(Stream& stream, Packet packet, Nanos now);
  bool came_late_anywhere(Stream& stream, Packet packet, Nanos now);
  bool is_rebuilt_held(Stream& stream, Packet packet, Nanos now);
  // decoder_repair.cc: LoWAR's packets.
  void lowar(Exit& exit, Packet packet);
  bool is_overtaken(const Stream& stream, const NegotiationHeader& header) const;
  bool was_taken_up(const Stream& stream, std::uint32_t psn) const;
  bool sends_again(const Stream& stream, std::int32_t ahead) const;
  static bool comes_again(Stream& stream, const NegotiationHeader& header);
  void announced(Exit& exit, Stream& stream, const NegotiationHeader& header);
  void release_unrepairable(Exit& exit, Stream& stream, const RepairHeader& header);
  void repair(Exit& exit, Packet packet, const RepairHeader& header);
  Outcome try_repair(Exit& exit, Stream& stream, Packet packet, const RepairHeader& header);
  Parts parts_of(const Stream& stream, const RepairHeader& header) const;
  PacketPtr rebuild(Context& context, Packet packet, const RepairHeader& header, const Parts& parts);
  bool proves_right(Packet rebuilt, const RepairHeader& header, std::uint32_t psn) const;
  Outcome take_in(Exit& exit, Stream& stream, PacketPtr rebuilt, std::uint32_t psn);
  Counter& reason(Outcome outcome);
  // decoder_order.cc: what goes out.
  void lose(Stream& stream, std::uint32_t lost);
  void take_back(Stream& stream);
  std::uint32_t lost_before(const Stream& stream, Packet packet, std::uint32_t psn) const;
  void give_up(Stream& stream, std::uint32_t psn, std::uint32_t lost);
  void give_up_before(Stream& stream, Packet packet, std::uint32_t psn);
  std::uint32_t next_block(const Stream& stream) const;
  void advance(Nanos now, Stream& stream, Packet packet, bool usable, bool rebuilt = false);
  void enter_block(Stream& stream, std::uint32_t psn, bool starts_message);
  void begin_block(Stream& stream, std::uint32_t psn);
  void release_units(Stream& stream);
  void end_coding(Stream& stream);
  void drain(Exit& exit, Stream& stream);
  void retry(Exit& exit, Stream& stream, std::uint32_t news = kNoPsn);
  void skip(Exit& exit, Stream& stream);
  void skip_to(Exit& exit, Stream& stream, std::uint32_t psn);
  void skip_all(Exit& exit, Stream& stream);
  void drop_repairs(Context& context, Stream& stream);
  bool hopeless(const Stream& stream) const;
  Nanos patience(const Stream& stream) const;
  void release_ready(Exit& exit, Stream& stream, std::uint32_t news = kNoPsn);
  Nanos patience_ends(const Stream& stream) const;
  void settle(Exit& exit, Stream& stream, std::uint32_t news = kNoPsn);
  void measure(Stream& stream, Packet packet, Nanos now, bool follows = true);

  // decoder_adapt.cc: what is measured, and what the sender says and is asked.
  void pass_by(Stream& stream, Packet packet, std::uint32_t psn);
  static void leave_message(Stream& stream, std::int32_t packets);
  void count_message(Stream& stream, Packet packet, std::uint32_t psn);
  void adapt(Exit& exit, Stream& stream, const Named& named, Packet packet);
  void consider(Stream& stream, Nanos now);
  Coding choose_for(Stream& stream, Coding current) const;
  void ask(Exit& exit, Stream& stream, const Named& named, Packet packet);
  void negotiate(Exit& exit, const NegotiationHeader& header, Packet packet);
  void learn(Stream& stream, const NegotiationHeader& header);
  void was_sent(Stream& stream, const RepairHeader& header);
  void was_sent(Stream& stream, const NegotiationHeader& header);
  bool is_counted(Stream& stream, std::int32_t more);
  void told_status(Exit& exit, Stream& stream, const NegotiationHeader& header);

  Config config_;
  Aim aim_;
  Port host_, link_;
  Encoder& encoder_;
  DecodeCounters count_;
  CodingUnits units_;
  ReorderingBuffer buffer_;
  StreamTable<Stream> streams_;
  flows::ZeroedArray<Timer> timers_;  // by stream: until what is held has waited for long enough
};

}  // namespace rocebox::lowar
