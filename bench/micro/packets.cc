// SPDX-License-Identifier: BSD-3-Clause
#include "bench/micro/packets.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/process/eal.h"

namespace rocebox::bench {
namespace {

constexpr PoolSizes kSizes{.headers = 4096, .small = 32768, .large = 2048, .giant = 8};
constexpr std::uint32_t kTablesMebibytes = 128;  // of switches: LPM, exact matches

PacketPtr allocate(std::uint32_t bytes) {
  PacketPtr packet = pool().allocate(bytes);
  if (packet) return packet;
  std::fprintf(stderr, "bench: the pool is dry\n");
  std::exit(1);
}

std::vector<std::uint8_t> random_bytes(std::uint32_t bytes, std::mt19937& random) {
  std::vector<std::uint8_t> result(bytes);
  for (std::uint8_t& byte : result) byte = static_cast<std::uint8_t>(random());
  return result;
}

}  // namespace

Pool& pool() {
  // Never destroyed: packets live until the process ends, and EAL's own end comes after that.
  static Pool* const pool = [] {
    start_eal(kSizes.mebibytes() + kTablesMebibytes);
    return new Pool(kSizes);
  }();
  return *pool;
}

roce::Underlay underlay(std::uint8_t ip_version, std::mt19937& random) {
  roce::Underlay result;
  result.ip_version = ip_version;
  if (ip_version == 4) {
    result.addresses = {roce::ipv4(10, 0, 0, static_cast<std::uint8_t>(random())),
                        roce::ipv4(10, 0, 1, static_cast<std::uint8_t>(random()))};
  } else {
    for (std::uint8_t& byte : result.addresses.source) byte = static_cast<std::uint8_t>(random());
    for (std::uint8_t& byte : result.addresses.destination) byte = static_cast<std::uint8_t>(random());
  }
  result.udp_source_port = static_cast<std::uint16_t>(0xC000 | random());
  return result;
}

Packet make_packet(const roce::Underlay& underlay, std::uint8_t opcode, std::uint32_t payload_bytes,
                   std::mt19937& random) {
  const std::vector<std::uint8_t> payload = random_bytes(payload_bytes, random);
  roce::PacketSpec spec;
  spec.underlay = underlay;
  spec.opcode = opcode;
  spec.destination_qp = draw(random, 1u << 24);
  spec.psn = draw(random, 1u << 24);
  spec.payload = payload;
  PacketPtr packet = allocate(roce::built_bytes(spec));
  roce::build(*packet, spec);
  return packet.release();
}

std::optional<std::uint64_t> instructions() {
  static const int kCounter = [] {
    perf_event_attr about{};
    about.size = sizeof about;
    about.type = PERF_TYPE_HARDWARE;
    about.config = PERF_COUNT_HW_INSTRUCTIONS;
    about.exclude_kernel = about.exclude_hv = 1;
    return static_cast<int>(syscall(SYS_perf_event_open, &about, 0, -1, -1, 0));
  }();
  std::uint64_t count = 0;
  if (kCounter < 0 || read(kCounter, &count, sizeof count) != sizeof count) return {};
  return count;
}

}  // namespace rocebox::bench

BENCHMARK_MAIN();
