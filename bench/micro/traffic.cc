// SPDX-License-Identifier: BSD-3-Clause
#include "bench/micro/traffic.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/roce/address.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/icrc.h"

namespace rocebox::bench {
namespace {

constexpr std::uint32_t kPacketsPerAck = 16;
constexpr std::uint32_t kFirstQpn = 0x100, kPartnerQpns = 0x800000;  // of requests, of their answers

}  // namespace

Traffic::Traffic(std::size_t flows) {
  std::mt19937 random(5);
  for (std::size_t i = 0; i < std::max(flows, kLeastPackets); i++) {
    const roce::Underlay from = underlay(4, random);
    if (i < flows) flows_.push_back({from, draw(random, 1u << 12) << 12, Packet()});
    Packet packet = make_packet(flows_[i % flows].underlay, IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, 1024, random);
    roce::edit_number<3>(packet, packet.meta().bth_offset + 5u, i % flows + kFirstQpn);
    free_.push_back(packet);
    if (i < flows) flows_[i].first = pool().copy(packet).release();
  }
}

Traffic::~Traffic() {
  for (const Flow& flow : flows_) rte_pktmbuf_free(flow.first.mbuf());
  for (std::size_t i = at_; i < free_.size(); i++) rte_pktmbuf_free(free_[i].mbuf());
}

bool Traffic::can() {
  if (at_ + kBurst <= free_.size()) return true;
  free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  return free_.size() >= kBurst;
}

std::span<Packet> Traffic::next() {
  burst_.assign(free_.begin() + static_cast<std::ptrdiff_t>(at_),
                free_.begin() + static_cast<std::ptrdiff_t>(at_ + kBurst));
  at_ += kBurst;
  for (Packet packet : burst_) {
    const auto flow = static_cast<std::size_t>(roce::bth(packet).destination_qp) - kFirstQpn;
    roce::edit_number<3>(packet, packet.meta().bth_offset + 9u, flows_[flow].psn++ & 0xFFFFFF);
  }
  return burst_;
}

std::span<Packet> Traffic::acks() {
  acks_.clear();
  for (Packet packet : burst_) {
    const std::uint32_t number = static_cast<std::uint32_t>(roce::bth(packet).destination_qp) - kFirstQpn;
    const std::uint32_t psn = flows_[number].psn - 1;
    if (psn % kPacketsPerAck) continue;
    roce::PacketSpec spec;
    spec.underlay = flows_[number].underlay;
    std::swap(spec.underlay.addresses.source, spec.underlay.addresses.destination);
    spec.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
    spec.destination_qp = kPartnerQpns + number;
    spec.psn = psn & 0xFFFFFF;
    spec.syndrome = 0x1F;
    PacketPtr ack = pool().allocate(roce::built_bytes(spec));
    roce::build(*ack, spec);
    acks_.push_back(ack.release());
  }
  return acks_;
}

void Traffic::back(std::span<Packet> packets) {
  for (Packet packet : packets) {
    if (packet.meta().opcode == roce::kOpcodeReserved || packet.meta().opcode == IBV_OPCODE_RC_ACKNOWLEDGE)
      rte_pktmbuf_free(packet.mbuf());
    else
      free_.push_back(packet);
  }
}

void Traffic::restore(std::uint64_t packets) {
  for (; restored_ < packets; restored_++)
    free_.push_back(pool().copy(flows_[restored_ % flows_.size()].first).release());
}

std::string Traffic::connections(bool receivers) const {
  std::string text;
  for (std::size_t i = 0; i < flows_.size(); i++) {
    const roce::Addresses& ways = flows_[i].underlay.addresses;
    const std::size_t there = kFirstQpn + i, here = kPartnerQpns + i;
    text += fmt::format("{{local: {}, local_qpn: {}, remote: {}, remote_qpn: {}}},",
                        roce::address_text(receivers ? ways.destination : ways.source), receivers ? there : here,
                        roce::address_text(receivers ? ways.source : ways.destination), receivers ? here : there);
  }
  return text;
}

}  // namespace rocebox::bench
