// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace rocebox::test {

std::vector<std::uint8_t> frame(const roce::PacketSpec& spec) {
  static Pool pool({.small = 16, .large = 16, .giant = 2});
  PacketPtr packet = pool.allocate(roce::built_bytes(spec));
  roce::build(*packet, spec);
  return {packet->data(), packet->data() + packet->size()};
}

bool parsed_right(Packet packet) {
  const auto facts = [](const PacketMeta& m) {
    return std::tuple(m.status, m.l3_offset, m.ip_version, m.udp_offset, m.bth_offset, m.payload_offset,
                      m.payload_bytes, m.datagram_end, m.bth_offset ? m.opcode : 0, m.bth_offset ? m.pad_bytes : 0);
  };
  const PacketMeta before = packet.meta();
  if (before.status == ParseStatus::kUnparsed) return true;
  roce::parse(packet);
  return facts(before) == facts(packet.meta());
}

void KernelBox::start(std::vector<Stage> stages, std::vector<Edge> inputs) {
  pipeline = std::make_unique<Pipeline>(std::move(stages), std::move(inputs), pool, stats);
  pipeline->set_sink([this](Port port, std::span<Packet> packets, Nanos now) {
    for (Packet packet : packets) {
      EXPECT_TRUE(parsed_right(packet)) << "what comes behind believes the metadata";
      out.push_back({now, port, {packet.data(), packet.data() + packet.size()}, packet.wire_bytes(), packet.meta()});
      rte_pktmbuf_free(packet.mbuf());
    }
  });
}

KernelBox::~KernelBox() {
  // The kernel's own count of what it holds must agree with the pool's.
  EXPECT_EQ(pool.in_use(), conservation().held()) << "packets lost or freed without Context::drop";
  pipeline.reset();
  EXPECT_EQ(pool.in_use(), 0u) << "packets leaked";
}

Packet KernelBox::make(Nanos now, Port in, std::span<const std::uint8_t> bytes, std::uint32_t wire_bytes) {
  PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(bytes.size()));
  if (!packet) throw std::runtime_error("the test's pool is dry");
  std::memcpy(packet->data(), bytes.data(), bytes.size());
  PacketMeta& meta = packet->meta();
  if (wire_bytes) meta.wire_bytes = wire_bytes;
  meta.arrival = now;
  meta.input = in;
  meta.identity = ++sequence_;
  roce::parse(*packet);
  return packet.release();
}

void KernelBox::send(Nanos now, Port in, std::span<const std::uint8_t> bytes, std::uint32_t wire_bytes) {
  run_until(now - 1);
  Packet packet = make(now, in, bytes, wire_bytes);
  const Arrivals arrivals{in, {&packet, 1}};
  pipeline->step(now, {&arrivals, 1});
}

void KernelBox::send_burst(Nanos now, Port in, std::span<const std::vector<std::uint8_t>> frames) {
  run_until(now - 1);
  std::vector<Packet> packets;
  for (const auto& bytes : frames) packets.push_back(make(now, in, bytes, 0));
  const Arrivals arrivals{in, packets};
  pipeline->step(now, {&arrivals, 1});
}

void KernelBox::run_until(Nanos until) {
  while (pipeline->next_deadline() <= until) pipeline->step(pipeline->next_deadline(), {});
}

void KernelBox::drain(unsigned limit) {
  for (; pipeline->next_deadline() != kNever && limit > 0; limit--) pipeline->step(pipeline->next_deadline(), {});
}

}  // namespace rocebox::test
