// SPDX-License-Identifier: BSD-3-Clause
// Makes a capture of RDMA WRITE traffic at MTU 1024: messages of 64 packets, several QPs in turn, every record at
// a time of its own. With `endless` each QP sends an even number of messages and is connected anew before each, half
// the PSN space away: when such a capture begins again, its packets are new to their flows and not sent again.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string_view>
#include <vector>

#include "runtime/capture/capture_writer.h"
#include "runtime/packet/pool.h"
#include "runtime/process/eal.h"
#include "runtime/roce/build.h"
#include "runtime/roce/psn.h"

namespace {

using namespace rocebox;

constexpr unsigned kMessagePackets = 64, kBurstPackets = 8;
constexpr std::uint32_t kMtu = 1024, kHalfPsns = 1u << 23;
constexpr Nanos kStart = 1'700'000'000'000'000'000, kGap = 90;  // about 100 Gb/s
constexpr PoolSizes kPool{.small = 64, .large = 8, .giant = 2};
constexpr std::uint32_t kRecordHeaderBytes = 16;

struct Qp {
  std::uint32_t number, psn;
  unsigned sent = 0;  // packets of the present message
};

std::uint8_t opcode_of(unsigned sent) {
  if (sent == 0) return IBV_OPCODE_RC_RDMA_WRITE_FIRST;
  return sent + 1 == kMessagePackets ? IBV_OPCODE_RC_RDMA_WRITE_LAST : IBV_OPCODE_RC_RDMA_WRITE_MIDDLE;
}

roce::PacketSpec next_packet(Qp& qp, std::span<const std::uint8_t> payload) {
  roce::PacketSpec spec;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
  spec.underlay.udp_source_port = static_cast<std::uint16_t>(0xC000 + qp.number);
  spec.opcode = opcode_of(qp.sent);
  spec.ack_req = qp.sent + 1 == kMessagePackets;
  spec.destination_qp = qp.number;
  spec.psn = qp.psn;
  spec.dma_length = kMessagePackets * kMtu;
  spec.payload = payload;
  qp.psn = roce::psn_add(qp.psn, 1);
  qp.sent = (qp.sent + 1) % kMessagePackets;
  return spec;
}

void make(const char* path, std::uint64_t bytes, unsigned qp_count, bool endless) {
  start_eal(kPool.mebibytes());
  Pool pool(kPool);
  CaptureWriter writer(path, {"wire"});
  std::mt19937 random(5);
  std::vector<std::uint8_t> noise(1 << 16);
  for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>(random());
  std::vector<Qp> qps;
  for (std::uint32_t i = 0; i < qp_count; i++)
    qps.push_back({0x100 + i, static_cast<std::uint32_t>(random() & roce::kPsnMask)});
  Nanos at = kStart;
  const std::uint64_t round = endless ? std::uint64_t{2} * kMessagePackets * qp_count : 1;
  for (std::uint64_t written = 0, packets = 0; written < bytes || packets % round != 0; packets++, at += kGap) {
    Qp& qp = qps[packets / kBurstPackets % qp_count];
    if (endless && qp.sent == 0) qp.psn = roce::psn_add(qp.psn, kHalfPsns);
    const std::size_t from = random() % (noise.size() - kMtu);
    const roce::PacketSpec spec = next_packet(qp, std::span(noise).subspan(from, kMtu));
    PacketPtr packet = pool.allocate(roce::built_bytes(spec));
    roce::build(*packet, spec);
    writer.write(0, at, *packet);
    written += packet->size() + kRecordHeaderBytes;
  }
  writer.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t megabytes = argc >= 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const unsigned qps = argc >= 4 ? static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)) : 16;
  const bool endless = argc == 5 && std::string_view(argv[4]) == "endless";
  if (megabytes == 0 || qps == 0 || argc > 5 || (argc == 5 && !endless)) {
    std::fprintf(stderr, "usage: make_capture FILE MEGABYTES [QPS [endless]]\n");
    return 2;
  }
  try {
    make(argv[1], megabytes * 1'000'000, qps, endless);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_capture: %s\n", error.what());
    return 1;
  }
}
