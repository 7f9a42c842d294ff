// SPDX-License-Identifier: BSD-3-Clause
// What lowar_fuzz.cc stands on: an input that is drawn from, gateways, hosts, and a forger.
#pragma once
#include <algorithm>
#include <memory>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/lowar/image.h"
#include "kernels/lowar/lowar.h"
#include "kernels/lowar/message_meter.h"
#include "kernels/lowar/stream.h"
#include "runtime/engine/pipeline.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/process/eal.h"
#include "runtime/roce/build.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/ipv4_checksum.h"
#include "runtime/roce/psn.h"
#include "tests/fuzz/fuzz.h"

namespace rocebox::fuzz::lowar_bed {

using Frame = std::vector<std::uint8_t>;
using Bytes = std::span<const std::uint8_t>;

/// By a hash: libFuzzer looks at every comparison of memory, of which a tree has many.
struct FrameHash {
  std::size_t operator()(const Frame& frame) const {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(frame.data()), frame.size()});
  }
};
template <class T>
using ByFrame = std::unordered_map<Frame, T, FrameHash>;

inline constexpr PoolSizes kSizes{.small = 4096, .large = 1024, .giant = 4};
inline constexpr Port kHost = 0, kLink = 1;
inline constexpr unsigned kStreams = 3;
inline constexpr std::uint32_t kFirstQpn = 0x10, kFreshQpn = 0x77;
inline Pool* pool = nullptr;

/// Bytes that the input cannot choose: a fuzzer that sees comparisons would find what proves itself.
struct Random {
  std::uint64_t state = 7;
  std::uint32_t next() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::uint32_t>((state ^ state >> 29) >> 24);
  }
  unsigned below(unsigned count) { return next() % count; }
  Frame bytes(std::size_t count) {
    Frame frame(count);
    for (auto& byte : frame) byte = static_cast<std::uint8_t>(next());
    return frame;
  }
};

inline PacketPtr parsed(Bytes bytes) {
  PacketPtr packet = pool->allocate(static_cast<std::uint32_t>(bytes.size()));
  require(static_cast<bool>(packet), "the pool is large enough");
  std::copy(bytes.begin(), bytes.end(), packet->data());
  roce::parse(*packet);
  return packet;
}
inline Frame frame_of(Packet packet) { return {packet.data(), packet.data() + packet.size()}; }
inline Frame sealed(Bytes bytes) {
  const PacketPtr packet = parsed(bytes);
  if (roce::icrc_held(*packet)) roce::icrc_store(*packet);
  return frame_of(*packet);
}

/// What a frame is to LoWAR. Of LoWAR's own packets `qpn` and `psn` are the header's.
struct View {
  lowar::Role role;
  std::uint32_t qpn = 0, psn = 0, bth_offset = 0, payload_bytes = 0;
  explicit View(Bytes bytes) {
    const PacketPtr packet = parsed(bytes);
    role = lowar::role_of(*packet);
    bth_offset = packet->meta().bth_offset, payload_bytes = packet->meta().payload_bytes;
    if (role == lowar::Role::kOther || bth_offset + sizeof(roce::Bth) > bytes.size()) return;
    const std::uint8_t* qpn_at = bytes.data() + bth_offset + (is_lowar() ? 1 : 5);
    qpn = static_cast<std::uint32_t>(qpn_at[0] << 16 | qpn_at[1] << 8 | qpn_at[2]);
    const std::uint8_t* psn_at = bytes.data() + bth_offset + 9;
    psn = static_cast<std::uint32_t>(psn_at[0] << 16 | psn_at[1] << 8 | psn_at[2]);
  }
  bool is_lowar() const { return role == lowar::Role::kLowar; }
  bool is_data() const { return role == lowar::Role::kRequest || role == lowar::Role::kResponse; }
};

/// The bytes of a LoWAR packet behind UDP, up to the ICRC.
inline Bytes lowar_bytes(const Frame& frame, const View& view) {
  return Bytes(frame).subspan(view.bth_offset, frame.size() - view.bth_offset - roce::kIcrcBytes);
}

/// One end's options: nine bytes.
inline lowar::Config draw_config(Input& input) {
  static constexpr std::pair<int, int> kCodings[] = {{8, 1}, {8, 2}, {4, 2}, {5, 1}, {1, 1}, {16, 4}, {9, 4}, {64, 8}};
  static constexpr double kTargets[] = {0.1, 0.01, 1e-3, 1e-6}, kRedundancies[] = {0.5, 1, 0.25, 0.01};
  static constexpr Nanos kHolds[] = {10 * kMillisecond, 20 * kMicrosecond, 100 * kMicrosecond, kSecond};
  lowar::Config config;
  std::tie(config.r, config.c) = input.one_of(kCodings);
  config.roce_mtu = static_cast<int>(input.below(5));
  config.units = std::max<std::int64_t>(config.c, 8 << input.below(6));
  config.reordering = lowar::kReorderingMin + 16 * input.below(8);
  config.reorder = input.below(32);
  config.adapt = input.below(2) == 1;
  config.target_loss = input.one_of(kTargets);
  config.redundancy_max = std::max(lowar::redundancy(config.coding()), input.one_of(kRedundancies));
  config.hold_max = input.one_of(kHolds);
  config.dwell = kMillisecond;
  config.streams = 8;
  return config;
}

/// What left a gateway.
struct Left {
  Nanos at;
  Port port;
  Frame bytes;
};

class Gateway {
 public:
  explicit Gateway(const lowar::Config& config) {
    std::vector<Stage> stages(1);
    stages[0].name = "lowar";
    stages[0].kernel = lowar::make(config, stats_);
    stages[0].shape = Shape::kTwoSided;
    stages[0].seed = 1;
    stages[0].outputs = {{Edge::kOutside, kHost}, {Edge::kOutside, kLink}};
    pipeline_ = std::make_unique<Pipeline>(std::move(stages), std::vector<Edge>{{0, kHost}, {0, kLink}}, *pool, stats_);
    pipeline_->set_sink([this](Port port, std::span<Packet> packets, Nanos at) {
      for (Packet packet : packets) {
        left_.push_back({at, port, frame_of(packet)});
        rte_pktmbuf_free(packet.mbuf());
      }
    });
  }
  /// What leaves with it, and what has left by timers until then.
  std::vector<Left> send(Nanos now, Port in, Bytes bytes) {
    timers(now - 1);
    PacketPtr packet = parsed(bytes);
    packet->meta().arrival = now, packet->meta().input = in, packet->meta().identity = ++sequence_;
    Packet one = packet.release();
    const Arrivals arrivals{in, {&one, 1}};
    pipeline_->step(now, {&arrivals, 1});
    return std::exchange(left_, {});
  }
  std::vector<Left> end() {
    timers(kNever - 1);
    require(pipeline_->conservation().held() == 0, "nothing waits for ever");
    return std::exchange(left_, {});
  }
  std::uint64_t count(const char* name) const { return stats_.read(name); }

 private:
  void timers(Nanos until) {
    while (pipeline_->next_deadline() <= until) pipeline_->step(pipeline_->next_deadline(), {});
  }
  CounterSet stats_;
  std::unique_ptr<Pipeline> pipeline_;
  std::vector<Left> left_;
  std::uint64_t sequence_ = 0;
};

/// Packets with a right ICRC that no gateway and no host has made.
class Forger {
 public:
  Forger(std::uint8_t ip_version, Random& random) : ip_version_(ip_version), random_(random) {}

  /// A LoWAR packet with other bytes, up to three of them.
  Frame bent(Frame frame) {
    const View view(frame);
    const std::size_t bytes = lowar_bytes(frame, view).size() - 1;
    const std::size_t span = random_.below(3) ? std::min(bytes, sizeof(lowar::HeaderBytes) + 11) : bytes;
    for (unsigned changes = 1 + random_.below(3); changes > 0; changes--) {
      std::uint8_t& byte = frame[view.bth_offset + 1 + random_.below(static_cast<unsigned>(span))];
      byte = static_cast<std::uint8_t>(random_.below(2) ? random_.next() : byte ^ 1u << random_.below(8));
    }
    return sealed(frame);
  }
  /// A repair packet that covers what lies about this PSN, with any image, of a jumbo frame's length at most.
  Frame repair(std::uint32_t qpn, std::uint32_t psn) {
    static constexpr unsigned kImages[] = {28, 100, 1100, 4200, 8900};
    lowar::RepairHeader header;
    lowar::Block& block = header.block;
    header.qpn = qpn;
    block.coding = coding();
    block.packets = static_cast<std::uint16_t>(1 + random_.below(block.coding.r));
    block.base_psn = near(psn, block.packets);
    header.isn = static_cast<std::uint8_t>(random_.below(std::min<unsigned>(block.coding.c, block.packets)));
    const Frame image = random_.bytes(kImages[random_.below(5)]);
    block.has_first = random_.below(2), block.has_last = random_.below(2), block.anew = random_.below(4) == 0;
    if (block.has_last)
      block.last_bytes = static_cast<std::uint16_t>(16 + random_.below(static_cast<unsigned>(image.size()) - 27));
    block.responses = is_responses(qpn);
    header.sent = static_cast<std::uint8_t>(random_.next());
    header.hop_sum = static_cast<std::uint16_t>(random_.next()), header.set_sum = random_.next();
    return lowar_frame(lowar::encode(header), image);
  }
  /// A data packet, and the repair packet that brings it alone: what that proves is only who made it.
  std::pair<Frame, Frame> proven(std::uint32_t qpn, std::uint32_t psn, std::uint32_t payload_bytes) {
    static constexpr std::uint8_t kOnly[kStreams] = {IBV_OPCODE_RC_RDMA_WRITE_ONLY, IBV_OPCODE_UC_SEND_ONLY,
                                                     IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY};
    roce::PacketSpec spec = base(qpn, near(psn, 2));
    spec.opcode = kOnly[(qpn - kFirstQpn) % kStreams];
    const Frame payload = random_.bytes(payload_bytes);
    spec.payload = payload;
    const PacketPtr packet = built(spec);
    lowar::RepairHeader header;
    header.qpn = qpn;
    header.block = {{1, 1}, spec.psn,         1, static_cast<std::uint16_t>(lowar::transport_bytes(*packet)), true,
                    true,   is_responses(qpn)};
    const lowar::Sums sums = lowar::sums_of(*packet);
    header.hop_sum = sums.hops, header.set_sum = sums.set;
    const lowar::CodedPrefix prefix = lowar::prefix_of(*packet);
    Frame image(reinterpret_cast<const std::uint8_t*>(&prefix), reinterpret_cast<const std::uint8_t*>(&prefix + 1));
    image.insert(image.end(), lowar::transport(*packet), lowar::transport(*packet) + lowar::transport_bytes(*packet));
    return {frame_of(*packet), lowar_frame(lowar::encode(header), image)};
  }
  /// A negotiation packet about this PSN, with this token or another.
  Frame negotiation(std::uint32_t qpn, std::uint32_t psn, std::uint32_t token) {
    lowar::NegotiationHeader header;
    header.qpn = random_.below(16) ? qpn : random_.below(roce::kPsnModulus);
    header.kind = static_cast<lowar::NegotiationKind>(1 + random_.below(3));
    if (random_.below(3)) header.coding = coding();
    header.base_psn = near(psn, random_.below(8) ? 20 : 5000);
    header.responses = is_responses(qpn);
    header.serial = static_cast<std::uint16_t>(random_.below(2) ? random_.below(4) : random_.next());
    header.token = random_.below(4) ? token : random_.next();
    const bool is_request = header.kind == lowar::NegotiationKind::kRequest;
    if (!is_request) header.sent = static_cast<std::uint16_t>(random_.next());
    return lowar_frame(lowar::encode(header), {}, is_request);
  }
  /// Headers below BTH are the same for all packets of one direction.
  roce::PacketSpec base(std::uint32_t qpn, std::uint32_t psn, bool back = false) const {
    roce::PacketSpec spec;
    spec.destination_qp = qpn, spec.psn = psn & roce::kPsnMask;
    spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
    if (back) std::swap(spec.underlay.addresses.source, spec.underlay.addresses.destination);
    spec.underlay.ip_version = ip_version_;
    spec.underlay.tos = 2;
    return spec;
  }
  static PacketPtr built(const roce::PacketSpec& spec) {
    PacketPtr packet = pool->allocate(roce::built_bytes(spec));
    require(static_cast<bool>(packet), "the pool is large enough");
    roce::build(*packet, spec);
    return packet;
  }

 private:
  static bool is_responses(std::uint32_t qpn) { return (qpn - kFirstQpn) % kStreams == 2; }
  std::uint32_t near(std::uint32_t psn, unsigned span) {
    return roce::psn_add(psn, static_cast<std::int64_t>(random_.below(2 * span)) - span);
  }
  lowar::Coding coding() {
    const unsigned c = 1 + random_.below(random_.below(4) ? 4 : lowar::kInterleavingMax);
    return {static_cast<std::uint16_t>(c + random_.below(random_.below(4) ? 8 : lowar::kBlockPacketsMax + 1 - c)),
            static_cast<std::uint8_t>(c)};
  }
  // As the payload of a packet without extended headers, whose BTH the header then takes the place of.
  Frame lowar_frame(const lowar::HeaderBytes& header, const Frame& image, bool back = false) {
    roce::PacketSpec spec = base(0, 0, back);
    spec.opcode = IBV_OPCODE_UC_SEND_MIDDLE;
    Frame payload(sizeof header - sizeof(roce::Bth));
    payload.insert(payload.end(), image.begin(), image.end());
    spec.payload = payload;
    const PacketPtr packet = built(spec);
    Frame frame = frame_of(*packet);
    std::memcpy(frame.data() + packet->meta().bth_offset, &header, sizeof header);
    return sealed(frame);
  }
  std::uint8_t ip_version_;
  Random& random_;
};

}  // namespace rocebox::fuzz::lowar_bed
