// SPDX-License-Identifier: BSD-3-Clause
// One frame: parse, every accessor, ICRC, edits, the way back. Byte 0 says how much longer the frame was on the wire.
#include <algorithm>

#include "runtime/engine/trace_sink.h"
#include "runtime/limits.h"
#include "runtime/packet/pool.h"
#include "runtime/process/eal.h"
#include "runtime/roce/build.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/parse.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace rocebox;
using fuzz::require;

Pool* pool = nullptr;

void check_places(Packet packet) {
  const PacketMeta& meta = packet.meta();
  require(meta.status > ParseStatus::kUnparsed && meta.status < ParseStatus::kCount, "a status");
  require(!roce::parse_status_name(meta.status).empty() && !roce::parse_status_sentence(meta.status).empty(),
          "its words");
  if (meta.ip_version) (void)roce::addresses(packet), (void)roce::ecn(packet);
  if (meta.bth_offset) {
    require(meta.bth_offset + sizeof(roce::Bth) <= packet.size(), "BTH is held");
    require(meta.udp_offset + sizeof(roce::Udp) == meta.bth_offset, "BTH stands behind UDP");
    require(meta.datagram_end >= meta.bth_offset + sizeof(roce::Bth) + roce::kIcrcBytes, "room for BTH and ICRC");
    require(roce::bth(packet).opcode == meta.opcode, "the opcode");
  }
  (void)trace_info(packet);
}

void check_roce(Packet packet) {
  const PacketMeta& meta = packet.meta();
  require(meta.payload_offset <= packet.size(), "every header is held");
  require(meta.datagram_end <= meta.wire_bytes, "the datagram was on the wire");
  require(meta.payload_offset + meta.payload_bytes + meta.pad_bytes + roce::kIcrcBytes == meta.datagram_end,
          "lengths add up");
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  require(meta.payload_offset == meta.bth_offset + sizeof(roce::Bth) + info.extension_bytes, "the payload's place");
  const auto end = packet.data() + meta.payload_offset;
  auto inside = [&](auto* header, std::uint16_t flag) {
    require((header != nullptr) == info.has(flag), "an extended header is there when the opcode has it");
    if (header) require(reinterpret_cast<std::uint8_t*>(header + 1) <= end, "and lies before the payload");
  };
  inside(roce::deth(packet), roce::kHasDeth);
  inside(roce::reth(packet), roce::kHasReth);
  inside(roce::atomic_eth(packet), roce::kHasAtomicEth);
  inside(roce::aeth(packet), roce::kHasAeth);
  inside(roce::atomic_ack_eth(packet), roce::kHasAtomicAckEth);
  inside(roce::immdt(packet), roce::kHasImmDt);
  inside(roce::ieth(packet), roce::kHasIeth);
}

void check_edits(Packet packet) {
  const PacketMeta& meta = packet.meta();
  roce::icrc_store(packet);
  require(roce::icrc_check(packet) == roce::IcrcStatus::kGood, "a stored ICRC is good");
  roce::edit_number<3>(packet, meta.bth_offset + 9u, 0xABCDEF);
  require(roce::icrc_check(packet) == roce::IcrcStatus::kGood, "good after a new PSN");
  roce::edit_number<1>(packet, meta.bth_offset + 4u, 0x5A);
  roce::edit_number<2>(packet, meta.udp_offset, 0x1234);
  roce::edit_number<1>(packet, meta.l3_offset + (meta.ip_version == 4 ? 8u : 7u), 3);
  require(roce::icrc_check(packet) == roce::IcrcStatus::kGood, "good after masked bytes and a new source port");
  roce::edit_number<4>(packet, meta.l3_offset + (meta.ip_version == 4 ? 12u : 20u), 0x01020304);
  require(roce::icrc_check(packet) == roce::IcrcStatus::kGood, "good after a new address");
  packet.data()[meta.bth_offset + 8u] ^= 1;
  roce::edit_number<3>(packet, meta.bth_offset + 5u, 0x17);
  require(roce::icrc_check(packet) == roce::IcrcStatus::kBad, "a wrong ICRC stays wrong");
}

void check_way_back(Packet packet) {
  roce::PacketSpec spec;
  spec.underlay = roce::reversed_underlay(packet);
  spec.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
  PacketPtr back = pool->allocate(roce::built_bytes(spec));
  roce::build(*back, spec);
  require(roce::is_roce(*back) && roce::icrc_check(*back) == roce::IcrcStatus::kGood, "an answer is well-formed");
  require(roce::addresses(*back).source == roce::addresses(packet).destination, "and goes back");
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  constexpr PoolSizes kSizes{.small = 64, .large = 16, .giant = 2};
  start_eal(kSizes.mebibytes());
  static Pool the_pool(kSizes);
  pool = &the_pool;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > kPacketBytesMax) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  const std::uint32_t held = static_cast<std::uint32_t>(bytes.size()), wire = held + data[0] * 16u;
  fuzz::ExactPacket exact(bytes, wire);
  Packet packet = exact.packet();
  roce::parse(packet);
  const PacketMeta first = packet.meta();
  roce::parse(packet);
  require(std::memcmp(&first, &packet.meta(), sizeof first) == 0, "parsing again finds the same");
  require(first.wire_bytes == wire, "parsing leaves the wire length alone");
  require(std::equal(bytes.begin(), bytes.end(), packet.data()), "parsing changes no byte");
  check_places(packet);
  if (first.status == ParseStatus::kRoce || first.status == ParseStatus::kUnknownOpcode ||
      first.status == ParseStatus::kReservedOpcode || first.status == ParseStatus::kUnsupportedService)
    (void)roce::icrc_check(packet);
  if (!roce::is_roce(packet)) return 0;
  check_roce(packet);
  check_way_back(packet);
  if (roce::icrc_held(packet)) check_edits(packet);
  return 0;
}
