// SPDX-License-Identifier: BSD-3-Clause
// Prints what rocebox's own parser sees of a capture, one JSON line a RoCEv2 packet, for oracle_wire.py --compare.
#include <cstdio>
#include <cstring>

#include "runtime/capture/capture_reader.h"
#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"
#include "runtime/packet/pool.h"
#include "runtime/process/eal.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/parse.h"

using namespace rocebox;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: dump_wire FILE\n");
    return 2;
  }
  try {
    const PoolSizes sizes{.small = 64, .large = 16, .giant = 2};
    start_eal(sizes.mebibytes());
    Pool pool(sizes);
    CaptureReader reader(argv[1]);
    CaptureRecord record;
    while (reader.next(record) == CaptureReader::Status::kPacket) {
      PacketPtr packet =
          pool.allocate(static_cast<std::uint32_t>(std::min<std::size_t>(record.bytes.size(), kPacketBytesMax)));
      std::memcpy(packet->data(), record.bytes.data(), packet->size());
      packet->meta().wire_bytes = record.wire_bytes;
      roce::parse(*packet);
      if (!roce::is_roce(*packet)) continue;
      const roce::Bth& bth = roce::bth(*packet);
      const roce::IcrcStatus icrc = roce::icrc_check(*packet);
      std::printf("{\"n\": %llu, \"opcode\": %u, \"psn\": %u, \"qpn\": %u, \"icrc_ok\": %s}\n",
                  static_cast<unsigned long long>(reader.records()), bth.opcode, static_cast<unsigned>(bth.psn.get()),
                  static_cast<unsigned>(bth.destination_qp.get()),
                  icrc == roce::IcrcStatus::kUnverifiable ? "null"
                  : icrc == roce::IcrcStatus::kGood       ? "true"
                                                          : "false");
    }
    return std::fflush(stdout) == 0 ? 0 : 1;
  } catch (const ConfigError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
