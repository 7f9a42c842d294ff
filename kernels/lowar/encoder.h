// SPDX-License-Identifier: BSD-3-Clause
// The encoder (LoWAR, section IV-B): data packets from the host pass, and repair packets follow the packet that ends
// their coding block.
#pragma once
#include <array>

#include "kernels/lowar/coding_units.h"
#include "kernels/lowar/config.h"
#include "kernels/lowar/counters.h"
#include "kernels/lowar/stream.h"
#include "runtime/kernel/kernel.h"
#include "runtime/roce/flow_table.h"

namespace rocebox::lowar {

class Encoder {
 public:
  /// `out` is the port of the link.
  Encoder(const Config& config, Stats& stats, Port out);
  void process(Context& context, Batch& batch);
  const EncodeCounters& counters() const { return count_; }

 private:
  // Zero bytes are a stream that has coded nothing yet.
  struct Stream {
    std::uint32_t next;  // PSN that continues the sequence
    Block block;         // block.packets is 0 between blocks
    bool begun;
    std::array<std::uint16_t, kInterleavingMax> units;  // by ISN
  };
  struct Call {
    Context& context;
    Batch& batch;
    unsigned slot;
    PacketPtr taken;  // the packet in the slot, when something goes ahead of it
    void go_ahead() {
      if (!taken) taken = batch.take(slot);
    }
  };

  void one(Call& call, Role role, const StreamKey& key, std::uint64_t hash);
  bool can_be_coded(Packet packet);
  bool begins_anew(const Stream& stream, Packet packet) const;
  void announce(Call& call, Packet packet, bool responses);
  void begin_block(Stream& stream, Packet packet, bool responses);
  void code(Stream& stream, Packet packet);
  void end_block(Call& call, Stream& stream, Packet like, std::uint32_t qpn);
  void send_repair(Call& call, Packet like, const RepairHeader& header, std::uint16_t unit);

  Config config_;
  Port out_;
  EncodeCounters count_;
  CodingUnits units_;
  roce::FlowTable<StreamKey> table_;
  roce::ZeroedArray<Stream> streams_;
};

}  // namespace rocebox::lowar
