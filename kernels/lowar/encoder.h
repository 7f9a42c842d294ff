// SPDX-License-Identifier: BSD-3-Clause
// The encoder (LoWAR, section IV-B): data packets from the host pass, and repair packets follow the packet that ends
// their coding block.
#pragma once
#include <array>

#include "kernels/lowar/coding_units.h"
#include "kernels/lowar/config.h"
#include "kernels/lowar/counters.h"
#include "kernels/lowar/stream_table.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::lowar {

class Encoder {
 public:
  /// `out` is the port of the link.
  Encoder(const Config& config, Stats& stats, Port out);
  void process(Context& context, Batch& batch);
  /// The far end's decoder asks for another (r, c) of a stream. Heeded at the stream's next message, if it is to be.
  void requested(const StreamKey& key, const NegotiationHeader& header, Nanos now);
  /// LoWAR packets that came from the host, which has no cause to send any.
  std::uint64_t lowar_packets() const { return count_.drop_lowar_host.read(); }
  /// Bytes of memory for so many streams, when all are in use.
  static std::size_t stream_bytes(std::uint32_t streams) { return StreamTable<Stream>::bytes(streams); }

 private:
  // A stream that has coded nothing yet is Stream{}.
  struct Stream : Sequence {
    Block block;  // block.packets is 0 between blocks
    bool begun;
    bool status_due;                     // the far end is to be told of `coding` again
    std::uint16_t serial, taken_serial;  // of the last request that was heeded; of that which `coding` comes from
    Coding coding, asked_for;            // in use; from the next message on
    std::uint32_t token;
    std::uint16_t sent, since_status;                   // packets; since `coding` was told
    Nanos heeded;                                       // when the last request was, 0: none yet
    std::array<std::uint16_t, kInterleavingMax> units;  // by ISN
  };
  // The packet that is worked on.
  struct Current {
    Context& context;
    Batch& batch;
    unsigned slot;
    PacketPtr taken;  // the packet in the slot, when something goes ahead of it
    // Something is to leave ahead of it.
    void take_out() {
      if (!taken) taken = batch.take(slot);
    }
  };

  roce::Ahead unit_ahead(Packet packet, const ClassifiedPacket& kind);
  void data(Current& current, const ClassifiedPacket& kind);
  bool admit(Packet packet, const ClassifiedPacket& kind);
  bool begins_anew(const Stream& stream, Packet packet) const;
  auto retire_idle() {
    return [this](const Stream& stream) { return retire(stream); };
  }
  bool retire(const Stream& stream);
  void begin_stream(Context& context, Stream& stream, bool responses);
  void apply_request(Stream& stream);
  bool status_is_due(const Stream& stream) const;
  void announce(Current& current, Stream& stream, Packet packet, NegotiationKind kind, bool responses);
  void follow_uncoded(Stream& stream, Packet packet);
  void begin_block(Stream& stream, Packet packet, bool responses, bool anew);
  void add_to_block(const Current& current, Stream& stream, Packet packet);
  void end_block(Current& current, Stream& stream, Packet like, std::uint32_t qpn);
  void send_repair(Current& current, Packet like, const RepairHeader& header, std::uint16_t unit,
                   std::uint16_t next_unit);

  Config config_;
  Port out_;
  EncodeCounters count_;
  CodingUnits units_;
  StreamTable<Stream> streams_;
};

}  // namespace rocebox::lowar
