// SPDX-License-Identifier: BSD-3-Clause
// LoWAR's two directions beside ISA-L's CRCs and XORs over the same packets: a bump with the kernel, everything that
// the engine does with a packet included. What is compared runs in turn, in rounds of half a millisecond or so, on the
// thread's CPU time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>

#include "bench/micro/bump.h"
#include "bench/micro/lowar_yardstick.h"
#include "bench/micro/packets.h"
#include "runtime/packet/wide_vectors.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/icrc.h"

namespace rocebox::bench {
namespace {

struct Case {
  unsigned r, c;
  std::uint32_t payload_bytes;
};
constexpr Case kCases[] = {{8, 1, 1024}, {32, 1, 1024}, {64, 8, 1024}, {8, 1, 4096}, {32, 1, 4096}, {64, 8, 4096}};
constexpr std::array<std::size_t, 3> kStreams = {1, 64, 512};
constexpr Nanos kBurstNanos = kBurst * 400;
constexpr std::uint32_t kFirstQpn = 0x100;

// Packets of some 4 MB in all, more than a core's own caches hold, as what a NIC has just written.
const std::vector<Packet>& packets_of(std::uint32_t payload_bytes) {
  static std::map<std::uint32_t, std::vector<Packet>> made;
  std::vector<Packet>& packets = made[payload_bytes];
  std::mt19937 random(5);
  const roce::Underlay from = underlay(4, random);
  while (packets.size() < (4u << 20) / payload_bytes)
    packets.push_back(make_packet(from, IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, payload_bytes, random));
  return packets;
}

std::int64_t cpu_nanos() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// One number of streams through both gateways.
class Subject {
 public:
  enum What { kEncode, kEncodeIsal, kDecode, kDecodeIsal, kWhats };
  using Times = std::array<double, kWhats>;  // ns for each data packet

  Subject(const Case& which, std::size_t streams)
      : which_(which),
        packets_(packets_of(which.payload_bytes)),
        psns_(streams),
        encode_isal_(which.r, which.c, streams, units(), which.payload_bytes + 64),
        decode_isal_(which.r, which.c, streams, units(), which.payload_bytes + 64) {
    const std::string kernels = fmt::format("{{lowar: {{r: {}, c: {}, units: {}, roce_mtu: {}}}}}", which.r, which.c,
                                            units(), which.payload_bytes);
    near_ = make_bump("host <-> lowar <-> wan", kernels);
    far_ = make_bump("host <-> lowar <-> wan", kernels);
    near_->set_sink([this](Port, std::span<Packet> out, Nanos) { wan_.insert(wan_.end(), out.begin(), out.end()); });
    far_->set_sink([](Port, std::span<Packet>, Nanos) {});
    wan_.reserve(packets_.size() * 2);
    stagger();
  }

  // One packet of each stream in turn, for as many packets as there are. Who goes first changes.
  Times round() {
    order_.resize(packets_.size());
    for (std::size_t i = 0; i < order_.size(); i++) order_[i] = static_cast<std::uint32_t>(i % psns_.size());
    return run();
  }
  // LoWAR packets for each block, and at the far end nothing else than they was dropped.
  bool right() const {
    const std::uint64_t expected = data_packets_ / which_.r * which_.c;
    const std::uint64_t slack = psns_.size() * which_.c * 2;  // blocks that have not ended
    return repairs_ + slack >= expected && repairs_ <= expected + slack && near_->books().conservation().dropped == 0 &&
           far_->books().conservation().dropped == repairs_ && far_->books().conservation().held() == 0;
  }

 private:
  std::size_t units() const { return std::max<std::size_t>(1024, kStreams.back() * which_.c); }

  // The streams' blocks begin at different times, so that they do not all end together.
  void stagger() {
    for (std::uint32_t stream = 0; stream < psns_.size(); stream++) {
      const std::size_t ahead = stream * 37u % which_.r;
      if (order_.size() + ahead > packets_.size()) run(), order_.clear();
      order_.insert(order_.end(), ahead, stream);
    }
    if (!order_.empty()) run();
    for (std::size_t i = 0; i < psns_.size() * which_.r; i += packets_.size()) round();
  }

  Times run() {
    dress();
    Times times;
    const bool isal_first = rounds_++ % 2 == 0;
    const auto input = std::span(packets_).first(order_.size());
    wan_.clear();
    cover(input);
    for (const bool isal : {isal_first, !isal_first}) {
      touch(input);
      const std::int64_t start = cpu_nanos();
      if (isal)
        encode_isal_.encode(covered_);
      else
        feed(*near_, 0, input);
      times[isal ? kEncodeIsal : kEncode] = static_cast<double>(cpu_nanos() - start);
    }
    cover(wan_);
    for (const Packet packet : wan_)  // one more owner of what the far end will free
      if (packet.meta().opcode == roce::kOpcodeReserved) rte_mbuf_refcnt_update(packet.mbuf(), 1);
    for (const bool isal : {isal_first, !isal_first}) {
      touch(wan_);
      const std::int64_t start = cpu_nanos();
      if (isal)
        decode_isal_.decode(covered_);
      else
        feed(*far_, 1, wan_);
      times[isal ? kDecodeIsal : kDecode] = static_cast<double>(cpu_nanos() - start);
    }
    for (const Packet packet : wan_)
      if (packet.meta().opcode == roce::kOpcodeReserved) rte_pktmbuf_free(packet.mbuf());
    repairs_ += wan_.size() - input.size();
    data_packets_ += input.size();
    benchmark::DoNotOptimize(encode_isal_.sum() + decode_isal_.sum());
    for (double& time : times) time /= static_cast<double>(input.size());
    return times;
  }

  // Each packet becomes the next one of its stream. Its ICRC stays right.
  void dress() {
    for (std::size_t i = 0; i < order_.size(); i++) {
      const Packet packet = packets_[i];
      roce::edit_number<3>(packet, packet.meta().bth_offset + 5u, order_[i] + kFirstQpn);
      roce::edit_number<3>(packet, packet.meta().bth_offset + 9u, psns_[order_[i]]++ & 0xFFFFFF);
    }
  }
  // What is compared finds the headers in the same caches.
  static void touch(std::span<const Packet> packets) {
    for (const Packet packet : packets) benchmark::DoNotOptimize(*packet.data());
  }

  void cover(std::span<const Packet> packets) {
    covered_.clear();
    for (const Packet packet : packets) {
      const PacketMeta& meta = packet.meta();
      const std::uint32_t bytes = meta.datagram_end - meta.l3_offset - roce::kIcrcBytes;
      const std::uint32_t stream = meta.opcode == roce::kOpcodeReserved
                                       ? Covered::kRepair
                                       : static_cast<std::uint32_t>(roce::bth(packet).destination_qp) - kFirstQpn;
      covered_.push_back(
          {packet.data() + meta.l3_offset, bytes, meta.bth_offset - std::uint32_t{meta.l3_offset}, stream});
    }
  }

  void feed(Device& device, Port in, std::span<const Packet> packets) {
    std::array<Packet, kBurst> burst;
    for (std::size_t at = 0; at < packets.size(); at += kBurst) {
      const auto part = packets.subspan(at, std::min<std::size_t>(kBurst, packets.size() - at));
      std::copy(part.begin(), part.end(), burst.begin());
      const Arrivals arrivals{in, {burst.data(), part.size()}};
      device.step(now_ += kBurstNanos, {&arrivals, 1});
    }
  }

  Case which_;
  const std::vector<Packet>& packets_;
  std::vector<std::uint32_t> psns_, order_;  // next PSN of each stream; the stream of each packet
  IsalYardstick encode_isal_, decode_isal_;
  std::unique_ptr<Device> near_, far_;
  std::vector<Packet> wan_;  // what the near end sent
  std::vector<Covered> covered_;
  Nanos now_ = 0;
  std::uint64_t rounds_ = 0, data_packets_ = 0, repairs_ = 0;
};

std::vector<std::unique_ptr<Subject>>& subjects(std::size_t number) {
  static std::map<std::size_t, std::vector<std::unique_ptr<Subject>>> made;
  auto& mine = made[number];
  if (mine.empty())
    for (const std::size_t streams : kStreams) mine.push_back(std::make_unique<Subject>(kCases[number], streams));
  return mine;
}

void lowar(benchmark::State& state) {
  const auto number = static_cast<std::size_t>(state.range(0));
  const Case& which = kCases[number];
  state.SetLabel(fmt::format("({}, {}), {} B", which.r, which.c, which.payload_bytes));
  auto& mine = subjects(number);
  std::array<Subject::Times, kStreams.size()> best;
  for (Subject::Times& times : best) times.fill(1e9);
  for (auto _ : state)
    for (std::size_t i = 0; i < mine.size(); i++) {
      const Subject::Times times = mine[i]->round();
      for (std::size_t what = 0; what < times.size(); what++) best[i][what] = std::min(best[i][what], times[what]);
    }
  constexpr const char* kNames[] = {"encode", "encode_isal", "decode", "decode_isal"};
  for (std::size_t i = 0; i < mine.size(); i++) {
    if (!mine[i]->right()) state.SkipWithError("packets went missing, or repair packets did");
    for (std::size_t what = 0; what < Subject::kWhats; what++)
      state.counters[fmt::format("{}/{}", kNames[what], kStreams[i])] = best[i][what];
  }
  state.counters["hz"] = static_cast<double>(rte_get_tsc_hz());
}
BENCHMARK(lowar)->ArgName("case")->DenseRange(0, std::size(kCases) - 1, 1);

}  // namespace
}  // namespace rocebox::bench
