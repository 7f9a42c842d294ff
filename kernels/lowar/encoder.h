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
  /// LoWAR packets that came from the host, who has no cause to send any.
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
  struct Call {
    Context& context;
    Batch& batch;
    const std::array<Named, kBatchMax>& names;
    unsigned slot;
    PacketPtr taken;  // the packet in the slot, when something goes ahead of it
    void go_ahead() {
      if (!taken) taken = batch.take(slot);
    }
  };

  roce::Ahead unit_ahead(Packet packet, const Named& named);
  void one(Call& call, const Named& named);
  bool can_be_coded(Packet packet, const Named& named);
  bool begins_anew(const Stream& stream, Packet packet) const;
  auto release_idle() {
    return [this](const Stream& stream) { return release(stream); };
  }
  bool release(const Stream& stream);
  void begin_stream(Context& context, Stream& stream, bool responses);
  void take_up(Stream& stream);
  bool tells_status(Stream& stream) const;
  void announce(Call& call, Stream& stream, Packet packet, NegotiationKind kind, bool responses);
  void leave_uncoded(Stream& stream, Packet packet);
  void begin_block(Stream& stream, Packet packet, bool responses, bool anew);
  void code(const Call& call, Stream& stream, Packet packet);
  void end_block(Call& call, Stream& stream, Packet like, std::uint32_t qpn);
  void send_repair(Call& call, Packet like, const RepairHeader& header, std::uint16_t unit, std::uint16_t next_unit);

  Config config_;
  Port out_;
  EncodeCounters count_;
  CodingUnits units_;
  StreamTable<Stream> streams_;
};

}  // namespace rocebox::lowar
