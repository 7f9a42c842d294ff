// SPDX-License-Identifier: BSD-3-Clause
// Two LoWAR gateways, and between them a link that loses, doubles, delays, marks and corrupts as the input says. What
// leaves the far one must be what a host sent, byte for byte, or what the link changed as it changed it: never more of
// it, never another packet, and all that came whole.
// Byte 0 has the coding, the IP version and where PSNs begin; byte 1 the far gateway's places to wait; byte 2 the
// number of steps of the hosts, of a byte each; then comes what the link does to each packet.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "kernels/lowar/lowar.h"
#include "runtime/engine/pipeline.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/packet/eal.h"
#include "runtime/roce/build.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/parse.h"
#include "runtime/roce/psn.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace rocebox;
using fuzz::require;
using Frame = std::vector<std::uint8_t>;
using Bytes = std::span<const std::uint8_t>;

constexpr PoolSizes kSizes{.small = 4096, .large = 64, .giant = 4};
constexpr unsigned kStepsMax = 24, kStreams = 3;
constexpr Port kHost = 0, kLink = 1;
constexpr std::size_t kMtu = 64, kEthernet = 14;
Pool* pool = nullptr;

PacketPtr parsed(Bytes bytes) {
  PacketPtr packet = pool->allocate(static_cast<std::uint32_t>(bytes.size()));
  require(static_cast<bool>(packet), "the pool is large enough");
  std::copy(bytes.begin(), bytes.end(), packet->data());
  roce::parse(*packet);
  return packet;
}

/// One gateway: packets in, packets out.
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
    pipeline_->set_sink([this](Port port, std::span<Packet> packets, Nanos) {
      for (Packet packet : packets) {
        require(port != in_, "nothing goes back: no gateway adapts");
        out.emplace_back(packet.data(), packet.data() + packet.size());
        rte_pktmbuf_free(packet.mbuf());
      }
    });
  }
  void send(Nanos now, Port in, Bytes bytes, std::uint64_t sequence) {
    in_ = in;
    timers(now - 1);
    PacketPtr packet = parsed(bytes);
    packet->meta().arrival = now, packet->meta().input = in, packet->meta().sequence = sequence;
    Packet one = packet.release();
    const Arrivals arrivals{in, {&one, 1}};
    pipeline_->step(now, {&arrivals, 1});
  }
  void end() {
    timers(kNever - 1);
    require(pipeline_->conservation().held() == 0, "nothing waits for ever");
  }
  std::vector<Frame> out;

 private:
  void timers(Nanos until) {
    while (pipeline_->next_deadline() <= until) pipeline_->step(pipeline_->next_deadline(), {});
  }
  CounterSet stats_;
  std::unique_ptr<Pipeline> pipeline_;
  Port in_ = kHost;
};

/// What the hosts send: three streams (requests of RC and UC, READ responses) with messages, retransmissions and gaps.
class Hosts {
 public:
  Hosts(std::uint8_t ip_version, std::uint32_t psn) : ip_version_(ip_version) {
    for (auto& next : psn_) next = psn;
  }
  void step(std::uint8_t byte) {
    const unsigned stream = byte % kStreams, kind = byte / kStreams % 8, packets = 1 + byte / 24 % 10;
    if (kind == 6) {  // back into the last message, whose bytes have changed since
      const std::uint32_t next = psn_[stream];
      for (std::size_t i = std::min<std::size_t>(packets - 1, last_[stream].size()); i < last_[stream].size(); i++) {
        psn_[stream] = last_[stream][i].psn;
        put(make(stream, last_[stream][i].opcode, last_[stream][i].bytes), stream);
      }
      psn_[stream] = next;
      went_back[stream] = true;
    } else if (kind == 7) {
      psn_[stream] += packets;  // what never came to the near gateway, or another READ's
    } else if (kind == 5 && stream == 0) {
      last_[stream].clear();
      add(stream, packets % 2 ? IBV_OPCODE_RC_FETCH_ADD : IBV_OPCODE_RC_RDMA_READ_REQUEST, 0);
    } else {
      message(stream, packets);
    }
  }
  std::vector<Frame> sent;
  std::map<Frame, unsigned> stream_of;
  bool went_back[kStreams] = {};

 private:
  void message(unsigned stream, unsigned packets) {
    static constexpr std::uint8_t kOpcodes[kStreams][4] = {
        {IBV_OPCODE_RC_RDMA_WRITE_FIRST, IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, IBV_OPCODE_RC_RDMA_WRITE_LAST_WITH_IMMEDIATE,
         IBV_OPCODE_RC_RDMA_WRITE_ONLY},
        {IBV_OPCODE_UC_SEND_FIRST, IBV_OPCODE_UC_SEND_MIDDLE, IBV_OPCODE_UC_SEND_LAST, IBV_OPCODE_UC_SEND_ONLY},
        {IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST, IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE,
         IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST, IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY}};
    last_[stream].clear();
    for (unsigned i = 0; i < packets; i++) {
      const unsigned place = packets == 1 ? 3 : i == 0 ? 0 : i + 1 == packets ? 2 : 1;
      add(stream, kOpcodes[stream][place], place < 2 ? kMtu : 1 + packets * 5);
    }
  }
  void add(unsigned stream, std::uint8_t opcode, std::size_t bytes) {
    last_[stream].push_back({psn_[stream], opcode, bytes});
    put(make(stream, opcode, bytes), stream);
  }
  Frame make(unsigned stream, std::uint8_t opcode, std::size_t bytes) {
    roce::PacketSpec spec;
    spec.opcode = opcode, spec.psn = psn_[stream]++ & roce::kPsnMask, spec.destination_qp = 0x10 + stream;
    spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
    spec.underlay.ip_version = ip_version_;
    spec.underlay.ip_identification = static_cast<std::uint16_t>(sent.size());
    spec.underlay.tos = 2, spec.dma_length = static_cast<std::uint32_t>(1 + bytes);
    Frame payload(bytes);
    for (auto& byte : payload) byte = static_cast<std::uint8_t>((state_ = state_ * 6364136223846793005ull + 1) >> 56);
    spec.payload = payload;
    PacketPtr packet = pool->allocate(roce::built_bytes(spec));
    roce::build(*packet, spec);
    return {packet->data(), packet->data() + packet->size()};
  }
  void put(const Frame& frame, unsigned stream) {
    sent.push_back(frame);
    stream_of[frame] = stream;
  }
  std::uint8_t ip_version_;
  std::uint32_t psn_[kStreams];
  struct Made {
    std::uint32_t psn;
    std::uint8_t opcode;
    std::size_t bytes;
  };
  std::vector<Made> last_[kStreams];  ///< the packets of the last message
  std::uint64_t state_ = 7;
};

struct Crossing {
  Frame bytes;
  Nanos pause = kMicrosecond;  // since the one before
  bool whole = true;
};

/// The link: a byte for each packet says what it does, and more bytes where and how.
struct Link {
  std::vector<Crossing> through;
  std::map<Frame, unsigned> changed;  ///< that may leave the far gateway as they are, so often
  /// Where nothing is late or comes twice, no more of a packet leaves than was sent: what is late may have been rebuilt
  /// long ago, or look like a retransmission.
  bool in_order = true, touched = false;

  void cross(const std::vector<Frame>& packets, Bytes actions) {
    std::vector<std::pair<std::size_t, Crossing>> late;  // and behind which packet they come
    for (std::size_t i = 0; i < packets.size(); i++) {
      const std::uint8_t action = take(actions);
      Crossing crossing{packets[i]};
      const unsigned what = action % 8, more = action / 8;
      if (what == 4) {
        in_order = false;
        through.push_back(crossing);
      } else if (what == 5) {
        in_order = false;
        late.emplace_back(i + more, crossing);
      } else if (what == 6) {
        corrupt(crossing, static_cast<std::size_t>(take(actions) << 8 | take(actions)));
      } else if (what == 7) {
        crossing.pause = more * 50 * kMicrosecond + 1;
      }
      touched |= what >= 3 && what <= 6;
      if (what != 3 && what != 5) {
        through.push_back(crossing);
        if (crossing.whole) seen(crossing.bytes);
      }
      for (const auto& [behind, its] : late)
        if (behind == i) through.push_back(its);
    }
    for (const auto& [behind, its] : late)
      if (behind >= packets.size()) through.push_back(its);
  }

 private:
  static std::uint8_t take(Bytes& from) {
    if (from.empty()) return 0;
    const std::uint8_t byte = from[0];
    from = from.subspan(1);
    return byte;
  }
  // One bit. Ethernet's header has a check of its own; so has IPv4's, whose loss would show in what is rebuilt.
  void corrupt(Crossing& crossing, std::size_t where) {
    const PacketPtr packet = parsed(crossing.bytes);
    const bool is_data = packet->meta().status == ParseStatus::kRoce;
    const std::size_t from = is_data ? kEthernet : packet->meta().bth_offset, bytes = crossing.bytes.size() - from;
    const std::size_t at = from + where / 8 % bytes;
    crossing.bytes[at] ^= static_cast<std::uint8_t>(1u << where % 8);
    crossing.whole = false;
    // What the ICRC covers and what does not say where the packet belongs: it is dropped, whatever comes.
    const bool in_payload = at >= crossing.bytes.size() - roce::kIcrcBytes - packet->meta().payload_bytes;
    if (!is_data || !in_payload || !coded_.contains(qpn_of(*packet))) changed[crossing.bytes]++;
  }
  // The far gateway knows that a stream is coded when it has seen a packet of it, and one of LoWAR's.
  void seen(const Frame& bytes) {
    const PacketPtr packet = parsed(bytes);
    const std::uint32_t qpn = qpn_of(*packet);
    if (packet->meta().status == ParseStatus::kRoce)
      begun_.insert(qpn);
    else if (begun_.contains(qpn))
      coded_.insert(qpn);
  }
  static std::uint32_t qpn_of(Packet packet) {
    const std::uint8_t* bth = packet.data() + packet.meta().bth_offset;
    if (packet.meta().status != ParseStatus::kRoce) bth -= 4;  // LoWAR's header has it behind the opcode
    return static_cast<std::uint32_t>(bth[5] << 16 | bth[6] << 8 | bth[7]);
  }
  std::set<std::uint32_t> begun_, coded_;
};

void judge(const Hosts& hosts, const Link& link, const std::vector<Frame>& got) {
  require(link.touched || got == hosts.sent, "nothing was lost");
  std::map<Frame, unsigned> allowed = link.changed;
  for (const Frame& frame : hosts.sent) allowed[frame]++;
  for (const Frame& frame : got) {
    const auto found = allowed.find(frame);
    require(found != allowed.end(), "what leaves was sent");
    require(!link.in_order || found->second-- > 0, "no more leaves than was sent");
  }
  const std::set<Frame> came(got.begin(), got.end());
  for (const Crossing& crossing : link.through)
    require(!crossing.whole || !hosts.stream_of.contains(crossing.bytes) || came.contains(crossing.bytes),
            "what came whole leaves");
  if (!link.in_order) return;
  for (unsigned stream = 0; stream < kStreams; stream++) {
    if (hosts.went_back[stream]) continue;
    auto at = hosts.sent.begin();
    for (const Frame& frame : got) {
      const auto its = hosts.stream_of.find(frame);
      if (its == hosts.stream_of.end() || its->second != stream) continue;
      at = std::find(at, hosts.sent.end(), frame);
      require(at != hosts.sent.end(), "in order");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  start_eal(kSizes.mebibytes() + 64);
  static Pool the_pool(kSizes);
  pool = &the_pool;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr struct {
    unsigned r, c;
  } kCodings[] = {{8, 1}, {8, 2}, {4, 2}, {5, 1}, {1, 1}, {16, 4}, {9, 4}, {64, 8}};
  if (size < 3) return 0;
  lowar::Config config;
  config.r = kCodings[data[0] % 8].r, config.c = kCodings[data[0] % 8].c;
  config.roce_mtu = 0, config.streams = 8, config.units = 64, config.reordering = 16 + data[1] % 8 * 16;
  config.reorder = data[1] / 8;
  Hosts hosts(data[0] & 8 ? 6 : 4, data[0] & 16 ? 0xFFFFF8 : 100);
  const std::size_t steps = std::min<std::size_t>({data[2] % (kStepsMax + 1), size - 3});
  for (std::size_t i = 0; i < steps; i++) hosts.step(data[3 + i]);
  {
    Gateway near(config), far(config);
    Nanos now = 0;
    std::uint64_t sequence = 0;
    for (const Frame& frame : hosts.sent) near.send(now += kMicrosecond, kHost, frame, ++sequence);
    near.end();
    Link link;
    link.cross(near.out, {data + 3 + steps, size - 3 - steps});
    for (const Crossing& crossing : link.through) far.send(now += crossing.pause, kLink, crossing.bytes, ++sequence);
    far.end();
    judge(hosts, link, far.out);
  }
  require(pool->in_use() == 0, "all packets are back");
  return 0;
}
