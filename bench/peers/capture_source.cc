// SPDX-License-Identifier: BSD-3-Clause
// Ports that play a capture from memory, endlessly and cheaply, in any program that uses DPDK: preloaded (LD_PRELOAD),
// it has port `net_null0`, or those whose names begin as ROCEBOX_CAPTURE_PORTS says, bring the packets of the pcap that
// ROCEBOX_CAPTURE names, one after the other, in place of empty ones; each of their queues all of them. net_pcap with
// `infinite_rx` does that too, but takes longer for a packet than what is to be measured: its copies lie apart in
// memory, each in pages of its own. Here they lie side by side.
#include <dlfcn.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <bit>
#include <bitset>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view kPort = "net_null0";
constexpr std::size_t kLine = 64, kFileHeader = 24, kRecordHeader = 16, kHeldBytes = 8;
constexpr std::uint32_t kMagics[] = {0xA1B2C3D4, 0xA1B23C4D};  // of a pcap of this byte order

struct alignas(kLine) Line {
  std::array<std::uint8_t, kLine> bytes;
};

struct Frame {
  std::uint32_t first_line;
  std::uint16_t lines, bytes;
};

std::vector<Line> lines;
std::vector<Frame> frames;
struct alignas(kLine) Queue {
  std::size_t next_frame = 0;
};
constexpr unsigned kQueuesMax = 32;  // of one port
std::array<Queue, RTE_MAX_ETHPORTS * kQueuesMax> queues;
std::bitset<RTE_MAX_ETHPORTS> started;

[[noreturn]] void fail(const char* file, const char* why) {
  std::fprintf(stderr, "capture_source: %s: %s\n", file, why);
  std::exit(2);
}

std::uint32_t word_at(const std::vector<char>& data, std::size_t at) {
  std::uint32_t word;
  std::memcpy(&word, data.data() + at, sizeof word);
  return word;
}

void load(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "cannot be read");
  const std::vector<char> data{std::istreambuf_iterator<char>(file), {}};
  if (data.size() < kFileHeader || (word_at(data, 0) != kMagics[0] && word_at(data, 0) != kMagics[1]))
    fail(path, "is no pcap of this byte order");
  for (std::size_t at = kFileHeader; at + kRecordHeader <= data.size();) {
    const std::uint32_t held = word_at(data, at + kHeldBytes);
    at += kRecordHeader;
    if (held == 0 || held > RTE_MBUF_DEFAULT_DATAROOM - kLine || held > data.size() - at)
      fail(path, "has a packet that does not fit");
    const auto count = (held + kLine - 1) / kLine;
    frames.push_back({static_cast<std::uint32_t>(lines.size()), static_cast<std::uint16_t>(count),
                      static_cast<std::uint16_t>(held)});
    lines.resize(lines.size() + count);
    std::memcpy(lines[frames.back().first_line].bytes.data(), data.data() + at, held);
    at += held;
  }
  if (frames.empty()) fail(path, "has no packets");
}

// Called with what net_null brings: packets of its own length, of whatever was in their memory.
std::uint16_t play(std::uint16_t port, std::uint16_t queue, rte_mbuf** packets, std::uint16_t count, std::uint16_t,
                   void*) {
  std::size_t& next_frame = queues[port * kQueuesMax + queue].next_frame;
  for (unsigned i = 0; i < count; i++) {
    const Frame frame = frames[next_frame];
    if (++next_frame == frames.size()) next_frame = 0;
    auto* to = rte_pktmbuf_mtod(packets[i], std::uint8_t*);
    for (unsigned line = 0; line < frame.lines; line++)
      std::memcpy(to + line * kLine, lines[frame.first_line + line].bytes.data(), kLine);
    packets[i]->data_len = frame.bytes;
    packets[i]->pkt_len = frame.bytes;
  }
  return count;
}

}  // namespace

/// In place of DPDK's function, which it calls: the port is started, and if it is the one, it plays.
extern "C" int rte_eth_dev_start(std::uint16_t port) {
  const auto start = std::bit_cast<int (*)(std::uint16_t)>(dlsym(RTLD_NEXT, "rte_eth_dev_start"));
  const char* path = std::getenv("ROCEBOX_CAPTURE");
  const char* ports = std::getenv("ROCEBOX_CAPTURE_PORTS");
  char name[RTE_ETH_NAME_MAX_LEN];
  if (!start || !path || rte_eth_dev_get_name_by_port(port, name) != 0) return -1;
  const int status = start(port);
  const bool plays = ports ? std::string_view(name).starts_with(ports) : name == kPort;
  if (status != 0 || !plays || started[port]) return status;  // what it plays it plays on when it is started again
  started[port] = true;
  if (frames.empty()) load(path);
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(port, &info) != 0 || info.nb_rx_queues > kQueuesMax) return -1;
  for (std::uint16_t queue = 0; queue < info.nb_rx_queues; queue++)
    if (!rte_eth_add_rx_callback(port, queue, play, nullptr)) return -1;
  return 0;
}
