// SPDX-License-Identifier: BSD-3-Clause
// IGMP and MLD, any bytes and well-formed ones, before a switch that snoops, and packets to groups between them: each
// must leave by the ports that a model of few lines says. A step is an operation, a port, and what the operation takes.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "runtime/component/registry.h"
#include "runtime/config/document.h"
#include "runtime/config/fields_reader.h"
#include "runtime/engine/pipeline.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/kernel/kernel_options.h"
#include "runtime/process/eal.h"
#include "runtime/roce/build.h"
#include "runtime/roce/membership.h"
#include "runtime/roce/multicast.h"
#include "runtime/roce/parse.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace rocebox;
using fuzz::require;
using Kind = roce::Membership::Kind;

constexpr PoolSizes kSizes{.small = 1024, .large = 64, .giant = 4};
constexpr std::uint64_t kTablesMebibytes = 256;
constexpr unsigned kPorts = 4, kGroups = 4, kStepsMax = 200;
constexpr const char* kSwitch =
    "ports: [p0, p1, p2, p3]\n"
    "programs: [forward, snooping]\n"
    "snooping: {groups: 4, unknown: drop, fast_leave: true, query_interval: 2s, response_time: 1s, robustness: 2}\n";
constexpr Nanos kMember = 5 * kSecond, kQuerier = 4500 * kMillisecond;  // RFC 3376, 8.4 and 8.5
Pool* pool = nullptr;

roce::IpAddress group_address(std::uint8_t number) {
  if (number & 8) return {0xFF, 0x1E, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, static_cast<std::uint8_t>(number & 7)};
  return roce::ipv4(239, 1, 0, number & 7);
}

// Which ports have members of what, and where routers are.
class Model {
 public:
  void join(const roce::IpAddress& group, Port port, Nanos now) {
    if (roce::is_link_local_group(group)) return;
    if (!members_.contains(group) && members_.size() >= kGroups) return;
    members_[group][port] = now + kMember;
  }
  void leave(const roce::IpAddress& group, Port port) {
    const auto at = members_.find(group);
    if (at == members_.end()) return;
    at->second.erase(port);
    if (at->second.empty()) members_.erase(at);
  }
  void query(Port port, Nanos now) { routers_[port] = std::max(routers_[port], now + kQuerier); }
  void age(Nanos now) {
    std::erase_if(routers_, [&](const auto& one) { return one.second <= now; });
    for (auto& [group, ports] : members_) std::erase_if(ports, [&](const auto& one) { return one.second <= now; });
    std::erase_if(members_, [](const auto& one) { return one.second.empty(); });
  }
  std::set<Port> ports(const roce::IpAddress& group, Port from) const {
    std::set<Port> all;
    const auto at = members_.find(group);
    if (at == members_.end()) return all;
    for (const auto& [port, until] : at->second) all.insert(port);
    for (const auto& [port, until] : routers_) all.insert(port);
    all.erase(from);
    return all;
  }

 private:
  std::map<roce::IpAddress, std::map<Port, Nanos>> members_;
  std::map<Port, Nanos> routers_;
};

// A report names as many groups as it has records at most, each of which is one.
void check_message(Packet packet, const roce::Membership& message) {
  require((message.kind == Kind::kBad) == (message.error != roce::Membership::Error::kNone), "what is bad says why");
  unsigned named = 0;
  roce::for_each_group(packet, message, [&](const roce::IpAddress& group, bool) {
    named++;
    require(roce::is_multicast(group), "what is named is a group");
  });
  require(named <= std::max<unsigned>(1, message.records), "no more groups than records");
  if (message.kind != Kind::kNone && message.kind != Kind::kBad)
    require(message.offset < message.end && message.end <= packet.size(), "the message is held");
}

class Bed {
 public:
  explicit Bed(const KernelOptions& options) : options_(options) {
    std::vector<Stage> stages(1);
    stages[0].name = "switch";
    stages[0].kernel = options_.make(stats_);
    stages[0].shape = options_.shape();
    stages[0].seed = 1;
    std::vector<Edge> edges;
    for (Port port = 0; port < kPorts; port++) {
      stages[0].outputs.push_back({Edge::kOutside, port});
      edges.push_back({0, port});
    }
    pipeline_.emplace(std::move(stages), std::move(edges), *pool, stats_);
    pipeline_->set_sink([this](Port port, std::span<Packet> packets, Nanos) {
      for (Packet packet : packets) {
        left_.insert(port);
        rte_pktmbuf_free(packet.mbuf());
      }
    });
  }
  void wait(Nanos span) {
    run_timers(now_ += span);
    model_.age(now_);
  }
  // A frame of anybody's.
  void message(Port port, std::span<const std::uint8_t> bytes) {
    PacketPtr packet = frame(bytes);
    if (!packet) return;
    const roce::Membership message = roce::read_membership(*packet);
    check_message(*packet, message);
    const bool is_multicast = packet->size() >= sizeof(roce::Ethernet) && (packet->data()[0] & 1);
    const auto* ethernet = packet->header<roce::Ethernet>(0);
    // VLANs have groups of their own, which the model knows nothing of.
    if (ethernet && ethernet->type == roce::kEtherVlan) return;
    if (is_multicast) {
      if (message.kind == Kind::kQuery && message.source != roce::ipv4(0, 0, 0, 0)) model_.query(port, now_);
      roce::for_each_group(*packet, message, [&](const roce::IpAddress& group, bool joins) {
        joins ? model_.join(group, port, now_) : model_.leave(group, port);
      });
    }
    step(port, std::move(packet));
  }
  void data(Port port, const roce::IpAddress& group) {
    roce::PacketSpec spec;
    const bool is_v4 = roce::is_ipv4(group);
    spec.underlay.ip_version = is_v4 ? 4 : 6;
    spec.underlay.addresses = {is_v4 ? roce::ipv4(10, 0, 0, 1) : roce::IpAddress{0xFD, 1}, group};
    spec.underlay.destination_mac = roce::multicast_mac(group);
    PacketPtr packet = pool->allocate(roce::built_bytes(spec));
    if (!packet) return;
    roce::build(*packet, spec);
    left_.clear();
    step(port, std::move(packet));
    wait(kMillisecond);
    require(left_ == model_.ports(group, port), "a group's packet goes to its members and to routers");
  }
  void end() {
    wait(2 * kMember);
    for (std::uint8_t number = 0; number < 16; number++) data(0, group_address(number));
    require(pool->in_use() == 0, "all packets are back");
  }

 private:
  PacketPtr frame(std::span<const std::uint8_t> bytes) const {
    PacketPtr packet = pool->allocate(static_cast<std::uint32_t>(bytes.size()));
    if (!packet) return packet;
    std::ranges::copy(bytes, packet->data());
    roce::parse(*packet);
    return packet;
  }
  void step(Port port, PacketPtr packet) {
    packet->meta().arrival = now_;
    packet->meta().input = port;
    Packet one = packet.release();
    const Arrivals arrivals{port, {&one, 1}};
    pipeline_->step(now_, {&arrivals, 1});
    wait(0);
  }
  void run_timers(Nanos until) {
    for (unsigned i = 0; i < 10'000 && pipeline_->next_deadline() <= until; i++)
      pipeline_->step(pipeline_->next_deadline(), {});
  }

  const KernelOptions& options_;
  CounterSet stats_;
  std::optional<Pipeline> pipeline_;
  Model model_;
  std::set<Port> left_;
  Nanos now_ = kSecond;
};

// A message that a host or router sends: kind and version in one byte, the group in the other.
void well_formed(Bed& bed, Port port, std::uint8_t what, std::uint8_t number) {
  const roce::IpAddress group = group_address(number);
  roce::MembershipFrame frame;
  frame.is_mld = !roce::is_ipv4(group);
  frame.version = static_cast<std::uint8_t>((frame.is_mld ? 1 : 2) + (what & 1));
  frame.kind = (what & 6) == 0 ? Kind::kQuery : (what & 6) == 2 ? Kind::kLeave : Kind::kReport;
  frame.source =
      frame.is_mld ? roce::IpAddress{0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1} : roce::ipv4(10, 0, 0, 1);
  frame.source_mac = {2, 0, 0, 0, 0, 1};
  frame.groups = {&group, 1};
  frame.response_time = kSecond;
  std::uint8_t bytes[roce::kMembershipBytesMax];
  const std::uint32_t size = roce::write_membership(bytes, frame);
  fuzz::ExactPacket written({bytes, size}, size);
  Packet packet = written.packet();
  roce::parse(packet);
  const roce::Membership read = roce::read_membership(packet);
  // The newest versions leave by a report.
  const Kind kind = frame.kind == Kind::kLeave && (what & 1) ? Kind::kReport : frame.kind;
  require(read.kind == kind && read.is_mld == frame.is_mld && read.source == frame.source, "what is written is read");
  bed.message(port, {bytes, size});
}

const KernelOptions& switch_options() {
  static const Registry registry;
  static const std::unique_ptr<Options> filled = [] {
    config::Mistakes mistakes("switch");
    const config::Node written = config::parse_yaml(kSwitch, mistakes);
    config::FieldsReader reader(&written, mistakes);
    std::unique_ptr<Options> options = registry.find("switch")->options(registry);
    options->fields(reader);
    require(mistakes.none(), "the switch is a right one");
    return options;
  }();
  return static_cast<const KernelOptions&>(*filled);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  start_eal(kSizes.mebibytes() + kTablesMebibytes);
  static Pool the_pool(kSizes);
  pool = &the_pool;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  {
    Bed bed(switch_options());
    std::span<const std::uint8_t> rest(data, size);
    for (unsigned i = 0; i < kStepsMax && rest.size() >= 4; i++) {
      const Port port = rest[1] % kPorts;
      const std::uint8_t a = rest[2], b = rest[3];
      const std::uint8_t operation = rest[0] & 3;
      rest = rest.subspan(4);
      if (operation == 0) {
        const auto bytes = std::min<std::size_t>(rest.size(), static_cast<std::size_t>(a << 8 | b));
        bed.message(port, rest.first(bytes));
        rest = rest.subspan(bytes);
      } else if (operation == 1) {
        well_formed(bed, port, a, b);
      } else if (operation == 2) {
        bed.wait((a << 8 | b) * kMillisecond);
      } else {
        bed.data(port, group_address(b));
      }
    }
    bed.end();
  }
  require(pool->in_use() == 0, "all packets are back");
  return 0;
}
