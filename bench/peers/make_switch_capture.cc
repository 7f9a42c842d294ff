// SPDX-License-Identifier: BSD-3-Clause
// Makes what switch_speed.py plays to a switch again and again: RDMA WRITEs of many QPs, one packet of each in turn and
// each turn in another order. Messages have one packet and three by turns, so that all of Only, First, Middle and Last
// come. Packets that must be full have a path MTU of 256 B, the least one; the others have 64 B of payload.
//   to_fabric.pcap  PSNs go a quarter of their space further with each message, and are back where they began after
//   four:
//                   ahead of all before, in the first round and in every other one
//   to_host.pcap    PSNs in order, up to kWindowPsns of each QP, again and again: inside one window of Themis-D
//   nacks.pcap      a NACK of each receiver for a packet that it has had
//   to_fabric.yaml, to_host.yaml  the connections, as themis' option of that name has them, of the ToR of that side
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "runtime/capture/capture_writer.h"
#include "runtime/packet/pool.h"
#include "runtime/process/eal.h"
#include "runtime/roce/address.h"
#include "runtime/roce/build.h"
#include "runtime/roce/psn.h"

namespace {

using namespace rocebox;

constexpr std::uint32_t kFirstQpn = 0x100, kPartnerQpns = 0x800000;  // of responders, of requesters
constexpr std::uint32_t kPathMtu = 256, kShortPayload = 64, kHosts = 32;
constexpr std::uint32_t kQuarterPsns = 1u << 22, kWindowPsns = 256, kRoundPackets = 8, kLongMessage = 3;
constexpr std::size_t kQpsMax = 65536;
constexpr Nanos kStart = 1'700'000'000'000'000'000, kGap = 80;
constexpr PoolSizes kPool{.small = 64, .large = 8, .giant = 2};
constexpr std::uint8_t kPsnSequenceError = 0x60;

struct Qp {
  roce::Underlay underlay;
  std::uint32_t number, partner, first_psn;
};

// Where packet `index` of a QP stands: the QP's messages have one packet and kLongMessage by turns.
struct Place {
  std::uint32_t message, at, packets;
  explicit Place(std::uint32_t index) {
    const std::uint32_t pair = index / (1 + kLongMessage), rest = index % (1 + kLongMessage);
    message = 2 * pair + (rest != 0);
    at = rest ? rest - 1 : 0;
    packets = rest ? kLongMessage : 1;
  }
  bool last() const { return at + 1 == packets; }
  std::uint8_t opcode() const {
    if (packets == 1) return IBV_OPCODE_RC_RDMA_WRITE_ONLY;
    if (at == 0) return IBV_OPCODE_RC_RDMA_WRITE_FIRST;
    return last() ? IBV_OPCODE_RC_RDMA_WRITE_LAST : IBV_OPCODE_RC_RDMA_WRITE_MIDDLE;
  }
};

std::vector<Qp> make_qps(std::uint32_t count, std::mt19937& random) {
  std::vector<Qp> qps(count);
  for (std::uint32_t i = 0; i < count; i++) {
    Qp& qp = qps[i];
    qp.underlay.addresses = {roce::ipv4(10, 0, 0, static_cast<std::uint8_t>(1 + i % kHosts)),
                             roce::ipv4(10, 0, 1, static_cast<std::uint8_t>(1 + i / kHosts % kHosts))};
    qp.underlay.udp_source_port = static_cast<std::uint16_t>(0xC000 | (random() & 0x3FFF));
    qp.number = kFirstQpn + i;
    qp.partner = kPartnerQpns + i;
    qp.first_psn = static_cast<std::uint32_t>(random() & roce::kPsnMask);
  }
  return qps;
}

class Maker {
 public:
  Maker(std::string folder, std::uint32_t qps, std::uint32_t packets)
      : folder_(std::move(folder)),
        pool_(kPool),
        qps_(make_qps(qps, random_)),
        rounds_(std::max<std::uint32_t>(kRoundPackets, packets / qps / kRoundPackets * kRoundPackets)) {}

  void make() {
    requests("to_fabric.pcap", true);
    requests("to_host.pcap", false);
    nacks();
    connections("to_fabric.yaml", false);
    connections("to_host.yaml", true);
  }

 private:
  void write(CaptureWriter& writer, const roce::PacketSpec& spec) {
    PacketPtr packet = pool_.allocate(roce::built_bytes(spec));
    roce::build(*packet, spec);
    writer.write(0, at_ += kGap, *packet);
  }

  void requests(const char* name, bool quarters) {
    CaptureWriter writer(folder_ + "/" + name, {"wire"});
    std::vector<std::uint8_t> payload(kPathMtu);
    std::vector<std::size_t> order(qps_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::uint32_t index = 0; index < rounds_; index++) {
      std::ranges::shuffle(order, random_);
      for (const std::size_t number : order) {
        const Qp& qp = qps_[number];
        const Place place(index);
        for (std::uint8_t& byte : payload) byte = static_cast<std::uint8_t>(random_());
        roce::PacketSpec spec;
        spec.underlay = qp.underlay;
        spec.opcode = place.opcode();
        spec.ack_req = place.last();
        spec.destination_qp = qp.number;
        const std::int64_t ahead =
            quarters ? std::int64_t{place.message % 4} * kQuarterPsns + place.at : index % kWindowPsns;
        spec.psn = roce::psn_add(qp.first_psn, ahead);
        spec.dma_length = (place.packets - 1) * kPathMtu + kShortPayload;
        spec.payload = std::span(payload).first(place.last() ? kShortPayload : kPathMtu);
        write(writer, spec);
      }
    }
    writer.finish();
  }

  void nacks() {
    CaptureWriter writer(folder_ + "/nacks.pcap", {"wire"});
    for (const Qp& qp : qps_) {
      roce::PacketSpec spec;
      spec.underlay = qp.underlay;
      std::swap(spec.underlay.addresses.source, spec.underlay.addresses.destination);
      spec.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
      spec.syndrome = kPsnSequenceError;
      spec.destination_qp = qp.partner;
      spec.psn = roce::psn_add(qp.first_psn, kRoundPackets / 2);
      write(writer, spec);
    }
    writer.finish();
  }

  void connections(const char* name, bool receivers) {
    std::ofstream file(folder_ + "/" + name);
    for (const Qp& qp : qps_) {
      const roce::Addresses& ways = qp.underlay.addresses;
      const std::string source = roce::address_text(ways.source), destination = roce::address_text(ways.destination);
      if (receivers)
        file << fmt::format("- {{local: {}, local_qpn: {}, remote: {}, remote_qpn: {}, first_psn: {}}}\n", destination,
                            qp.number, source, qp.partner, qp.first_psn);
      else
        file << fmt::format("- {{local: {}, local_qpn: {}, remote: {}, remote_qpn: {}}}\n", source, qp.partner,
                            destination, qp.number);
    }
    file.flush();
    if (!file) throw std::runtime_error(folder_ + "/" + name + " cannot be written");
  }

  std::string folder_;
  Pool pool_;
  std::mt19937 random_{5};
  std::vector<Qp> qps_;
  std::uint32_t rounds_;  // packets of each QP
  Nanos at_ = kStart;
};

}  // namespace

int main(int argc, char** argv) {
  const std::size_t qps = argc == 4 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const std::size_t packets = argc == 4 ? std::strtoull(argv[3], nullptr, 10) : 0;
  if (qps == 0 || qps > kQpsMax || packets == 0 || packets > kQpsMax * kRoundPackets) {
    std::fprintf(stderr, "usage: make_switch_capture FOLDER QPS PACKETS   (8 packets of each QP at least)\n");
    return 2;
  }
  try {
    start_eal(kPool.mebibytes());
    Maker(argv[1], static_cast<std::uint32_t>(qps), static_cast<std::uint32_t>(packets)).make();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_switch_capture: %s\n", error.what());
    return 1;
  }
}
