// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/contracts/traffic.h"

#include <cstring>
#include <random>

#include "runtime/kernel/splitmix64.h"
#include "tests/unit/harness.h"

namespace rocebox::test {
namespace {

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  TrafficPacket next(Nanos at, Port in) {
    TrafficPacket packet{at, in, {}, 0, true, false, 0};
    switch (below(20)) {
      case 0:
        packet.bytes = noise();
        break;
      case 1:
        packet.bytes = arp();
        break;
      case 2:
        packet.bytes = other_ip();
        break;
      case 3:
        packet.bytes = fragment();
        break;
      case 4:
        packet.bytes = malformed();
        break;
      default:
        packet = roce(at, in);
    }
    if (packet.wire_bytes == 0) packet.wire_bytes = static_cast<std::uint32_t>(packet.bytes.size());
    return packet;
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  roce::PacketSpec spec(Port in) {
    const auto flow = below(4);
    roce::PacketSpec s;
    s.underlay.ip_version = flow == 3 ? 6 : 4;
    if (flow == 2) s.underlay.vlans = {7, 0};
    const auto host = static_cast<std::uint8_t>(10 + flow);
    s.underlay.addresses = {roce::ipv4(10, 0, in, host),
                            roce::ipv4(10, 0, static_cast<std::uint8_t>(1 - in % 2), host)};
    s.underlay.tos = static_cast<std::uint8_t>(below(4));
    s.underlay.ip_identification = ++identification_;
    s.destination_qp = 0x10 + flow;
    std::uint32_t& psn = psn_[in % 2][flow];
    const std::uint32_t step = below(12);
    if (step == 0)
      psn -= below(5);  // goes back
    else if (step == 1)
      psn += below(4);  // skips
    else
      psn++;
    s.psn = psn & 0xFFFFFF;
    return s;
  }

  TrafficPacket roce(Nanos at, Port in) {
    constexpr std::uint8_t kData[] = {IBV_OPCODE_RC_SEND_ONLY,
                                      IBV_OPCODE_RC_RDMA_WRITE_FIRST,
                                      IBV_OPCODE_RC_RDMA_WRITE_MIDDLE,
                                      IBV_OPCODE_RC_RDMA_WRITE_LAST,
                                      IBV_OPCODE_UC_SEND_ONLY,
                                      IBV_OPCODE_UC_RDMA_WRITE_MIDDLE,
                                      IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY,
                                      IBV_OPCODE_UD_SEND_ONLY,
                                      IBV_OPCODE_RC_SEND_LAST_WITH_IMMEDIATE};
    constexpr std::uint8_t kBare[] = {IBV_OPCODE_RC_ACKNOWLEDGE, IBV_OPCODE_RC_RDMA_READ_REQUEST,
                                      IBV_OPCODE_RC_FETCH_ADD, IBV_OPCODE_RC_ATOMIC_ACKNOWLEDGE, roce::kOpcodeCnp};
    TrafficPacket packet{at, in, {}, 0, false, false, 0};
    roce::PacketSpec s = spec(in);
    std::vector<std::uint8_t> payload;
    if (below(4) != 0) {
      s.opcode = kData[below(std::size(kData))];
      payload.resize(8 + below(1017));
      packet.mark = next_mark();
      std::memcpy(payload.data(), &packet.mark, 8);
      for (std::size_t i = 8; i < payload.size(); i++) payload[i] = static_cast<std::uint8_t>(random_());
    } else {
      s.opcode = kBare[below(std::size(kBare))];
      constexpr std::uint8_t kSyndromes[] = {0x1F, 0x00, 0x60, 0x62, 0x2C};
      s.syndrome = kSyndromes[below(std::size(kSyndromes))];
      s.dma_length = below(5000);
    }
    s.payload = payload;
    packet.bytes = frame(s);
    packet.wire_bytes = static_cast<std::uint32_t>(packet.bytes.size());
    if (below(15) == 0 && !own_packets().empty()) own_packets()[own_++ % own_packets().size()](packet, random_);
    if (packet.mark && below(10) == 0) {
      packet.bytes[packet.bytes.size() - 5 - below(4)] ^= 0x5A;  // pad or the end of the payload, never the mark
      // Several bits: a link that flips one of them cannot make the ICRC right again.
      packet.bad_icrc = true;
    }
    if (below(25) == 0)
      packet.bytes.resize(std::min<std::size_t>(packet.bytes.size(), 20 + below(100)));  // snapped
    else if (below(25) == 0)
      packet.bytes.insert(packet.bytes.end(), below(20), 0), packet.wire_bytes = 0;  // trailer
    return packet;
  }

  std::vector<std::uint8_t> noise() {
    std::vector<std::uint8_t> bytes(14 + below(200));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random_());
    return bytes;
  }
  std::vector<std::uint8_t> arp() {
    std::vector<std::uint8_t> bytes(60);
    bytes[12] = 0x08, bytes[13] = 0x06;
    bytes[30] = static_cast<std::uint8_t>(random_());
    return bytes;
  }
  std::vector<std::uint8_t> plain_frame() {
    roce::PacketSpec s;
    s.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
    const std::vector<std::uint8_t> payload(below(300) + 8, static_cast<std::uint8_t>(random_()));
    s.payload = payload;
    return frame(s);
  }
  std::vector<std::uint8_t> other_ip() {
    std::vector<std::uint8_t> bytes = plain_frame();
    bytes[23] = 6;  // TCP
    return bytes;
  }
  std::vector<std::uint8_t> fragment() {
    std::vector<std::uint8_t> bytes = plain_frame();
    bytes[20] = 0x20;                                          // more fragments
    bytes[21] = below(2) ? std::uint8_t{0} : std::uint8_t{9};  // first or later
    return bytes;
  }
  std::vector<std::uint8_t> malformed() {
    std::vector<std::uint8_t> bytes = plain_frame();
    const std::uint32_t places[] = {14, 16, 38, 43, 42};  // version/IHL, total length, UDP length, TVer/pad, opcode
    bytes[places[below(5)]] ^= static_cast<std::uint8_t>(1 + below(255));
    return bytes;
  }

  // Two marks differ in about half their bits, so that a kernel that flips some makes none into another.
  std::uint64_t next_mark() { return splitmix64::next(mark_); }

  std::mt19937_64 random_;
  std::uint32_t psn_[2][4] = {{0xFFFF00, 0, 100, 5000}, {0xFFFFF0, 7, 0x800000, 1}};
  std::size_t own_ = 0;  // packets of kernels' protocols, which take turns
  std::uint16_t identification_ = 0;
  std::uint64_t mark_ = 0;
};

}  // namespace

std::vector<OwnPacket>& own_packets() {
  static std::vector<OwnPacket> all;
  return all;
}

std::vector<TrafficPacket> mixed_traffic(std::uint64_t seed, std::size_t count, Port ports) {
  Generator generator(seed);
  std::mt19937_64 times(seed + 1);
  std::vector<TrafficPacket> traffic;
  Nanos at = 1000;
  while (traffic.size() < count) {
    at += static_cast<Nanos>(times() % 4000);
    // Bursts of one instant, each by one port, up to well beyond a batch.
    const std::size_t burst = times() % 8 == 0 ? 1 + times() % 150 : 1;
    const auto in = static_cast<Port>(times() % ports);
    for (std::size_t i = 0; i < burst; i++) traffic.push_back(generator.next(at, in));
    at++;
  }
  return traffic;
}

}  // namespace rocebox::test
