// SPDX-License-Identifier: BSD-3-Clause
// What a kernel costs: a bump with it on RDMA WRITE packets of 1024 B, beside a bump without kernels.
#include <fmt/format.h>

#include "bench/micro/bump.h"
#include "bench/micro/packets.h"
#include "runtime/roce/address.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/icrc.h"

namespace rocebox::bench {
namespace {

struct Case {
  const char* label;
  const char* path;  // null: a switch
  const char* options;
  Port in = 0;
};
constexpr Case kCases[] = {
    {"no kernel", "a <-> b", "{}"},
    {"inspect", "a <-> inspect <-> b", "{inspect: {}}"},
    {"inspect, ICRC not checked", "a <-> inspect <-> b", "{inspect: {check_icrc: false}}"},
    {"link, no impairment", "a <-> link <-> b", "{link: {}}"},
    {"link, 1% loss", "a <-> link <-> b", "{link: {loss: 1%}}"},
    {"link, 1% ECN marks", "a <-> link <-> b", "{link: {mark: 1%}}"},
    {"link, 10 us delay", "a <-> link <-> b", "{link: {delay: 10us}}"},
    {"link, 10 us delay, 100 Gbps", "a <-> link <-> b", "{link: {delay: 10us, rate: 100Gbps}}"},
    {"lowar (8, 1), from the host", "a <-> lowar <-> b", "{lowar: {r: 8, c: 1}}"},
    {"lowar (32, 1), from the host", "a <-> lowar <-> b", "{lowar: {r: 32, c: 1}}"},
    {"lowar (32, 1), from a clean link", "a <-> lowar <-> b", "{lowar: {r: 32, c: 1}}", 1},
    {"switch, L2, static", nullptr,
     "{ports: [a, b], forward: {learning: false, macs: [{mac: '02:00:00:00:00:02', ports: [b]}]}}"},
    {"switch, L2, static, behind six rules", nullptr,
     "{ports: [a, b], programs: [acl, forward], acl: {rules: [{match: {opcodes: [rc_acknowledge, cnp]}, mirror: 0}, "
     "{match: {protocol: tcp, destination_port: 1-1023}, action: drop}, {match: {source: 192.168.0.0/16}, dscp: 8}, "
     "{match: {destination_qp: 0xf00000/0xf00000}}, {match: {ecn: 3}, traffic_class: 5}, {name: all}]}, forward: "
     "{learning: false, macs: [{mac: '02:00:00:00:00:02', ports: [b]}]}}"},
    {"switch, L2, learning", nullptr, "{ports: [a, b], forward: {macs: [{mac: '02:00:00:00:00:02', ports: [b]}]}}"},
    {"switch, L3, four paths", nullptr,
     "{ports: [a, b, c, d, e], forward: {learning: false, router_mac: '02:00:00:00:00:02', routes: [{prefix: "
     "0.0.0.0/0, "
     "via: [{port: b, mac: '02:00:00:00:00:02'}, {port: c, mac: '02:00:00:00:00:02'}, {port: d, mac: "
     "'02:00:00:00:00:02'}, {port: e, mac: '02:00:00:00:00:02'}]}]}}"},
};
// One half of Themis, every connection with state. CONNECTIONS is replaced by those of the traffic.
constexpr Case kThemisCases[] = {
    {"themis, from the sender's NIC, four paths", nullptr,
     "{ports: [h, s1, s2, s3, s4], programs: [forward, themis], forward: {learning: false, router_mac: "
     "'02:00:00:00:00:02', routes: [{prefix: 10.0.1.0/24, via: [{port: s1, mac: '02:00:00:00:00:02'}, {port: s2, mac: "
     "'02:00:00:00:00:02'}, {port: s3, mac: '02:00:00:00:00:02'}, {port: s4, mac: '02:00:00:00:00:02'}]}]}, themis: "
     "{hosts: [h], paths: 4, learning: false, connections: [CONNECTIONS]}}"},
    {"themis, to the receiver's NIC, an ACK for 16 packets", nullptr,
     "{ports: [h, s1], programs: [forward, themis], forward: {learning: false, router_mac: '02:00:00:00:00:02', "
     "routes: [{prefix: 10.0.1.0/24, via: [{port: h, mac: '02:00:00:00:00:02'}]}, {prefix: 10.0.0.0/24, via: [{port: "
     "s1, mac: '02:00:00:00:00:02'}]}]}, themis: {hosts: [h], paths: 4, learning: false, connections: [CONNECTIONS]}}",
     1},
};
constexpr std::uint32_t kPacketsPerAck = 16;
// A little less than 100 Gbps with packets of 1088 B on the wire, so that nothing piles up.
constexpr Nanos kBurstNanos = kBurst * 90;

constexpr std::uint32_t kFirstQpn = 0x100, kPartnerQpns = 0x800000;  // of requests, of their answers

// Packets that go round: one per flow and enough to cover what a link holds, each with its flow's next PSN when sent
// (edited, so that the ICRC stays right: that is part of what a bump without kernels costs here).
class Traffic {
 public:
  explicit Traffic(std::size_t flows) {
    std::mt19937 random(5);
    for (std::size_t i = 0; i < std::max<std::size_t>(flows, 1024); i++) {
      const roce::Underlay from = underlay(4, random);
      if (i < flows) flows_.push_back({from, draw(random, 1u << 12) << 12, Packet()});
      Packet packet = make_packet(flows_[i % flows].underlay, IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, 1024, random);
      roce::edit_number<3>(packet, packet.meta().bth_offset + 5u, i % flows + kFirstQpn);
      free_.push_back(packet);
      if (i < flows) flows_[i].first = pool().copy(packet).release();
    }
  }
  ~Traffic() {
    for (const Flow& flow : flows_) rte_pktmbuf_free(flow.first.mbuf());
    for (std::size_t i = at_; i < free_.size(); i++) rte_pktmbuf_free(free_[i].mbuf());
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // The next burst; the PSNs of a flow follow one another.
  std::span<Packet> next() {
    burst_.assign(free_.begin() + static_cast<std::ptrdiff_t>(at_),
                  free_.begin() + static_cast<std::ptrdiff_t>(at_ + kBurst));
    at_ += kBurst;
    for (Packet packet : burst_) {
      const auto flow = static_cast<std::size_t>(roce::bth(packet).destination_qp) - kFirstQpn;
      roce::edit_number<3>(packet, packet.meta().bth_offset + 9u, flows_[flow].psn++ & 0xFFFFFF);
    }
    return burst_;
  }
  // ACKs of what the last bursts had, one for kPacketsPerAck packets of a flow, as its receiver would send them.
  std::span<Packet> acks() {
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
  // Its flows as Themis' connections; `local`: of the ToR of their receivers.
  std::string connections(bool receivers) const {
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
  bool can() {
    if (at_ + kBurst <= free_.size()) return true;
    free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
    return free_.size() >= kBurst;
  }
  // Makes up for `packets` that were dropped, so that they do not run out.
  void restore(std::uint64_t packets) {
    for (; restored_ < packets; restored_++)
      free_.push_back(pool().copy(flows_[restored_ % flows_.size()].first).release());
  }
  // What a kernel made itself does not go round.
  void back(std::span<Packet> packets) {
    for (Packet packet : packets) {
      if (packet.meta().opcode == roce::kOpcodeLowar || packet.meta().opcode == IBV_OPCODE_RC_ACKNOWLEDGE)
        rte_pktmbuf_free(packet.mbuf());
      else
        free_.push_back(packet);
    }
  }

 private:
  struct Flow {
    roce::Underlay underlay;
    std::uint32_t psn;
    Packet first;  // kept aside
  };
  std::vector<Flow> flows_;
  std::vector<Packet> free_, burst_, acks_;
  std::size_t at_ = 0;
  std::uint64_t restored_ = 0;
};

std::unique_ptr<Device> make(const Case& which, const Traffic& traffic) {
  if (which.path) return make_bump(which.path, which.options);
  std::string options = which.options;
  constexpr std::string_view kHole = "CONNECTIONS";
  if (const std::size_t at = options.find(kHole); at != std::string::npos)
    options.replace(at, kHole.size(), traffic.connections(which.in != 0));
  return make_device(fmt::format("{{switch: {}}}", options));
}

// `acked`: what comes in by a port other than 0 is acknowledged by port 0.
void run(benchmark::State& state, const Case& which, bool acked = false) {
  const auto flows = static_cast<std::size_t>(state.range(1));
  state.SetLabel(which.label);
  state.counters["flows"] = static_cast<double>(flows);
  Traffic traffic(flows);
  std::unique_ptr<Device> device = make(which, traffic);
  if (!device) return state.SkipWithError("its configuration has mistakes");
  device->set_sink([&](Port, std::span<Packet> out, Nanos) { traffic.back(out); });
  Nanos now = 0;
  auto burst = [&] {
    const Arrivals arrivals{which.in, traffic.next()};
    device->step(now += kBurstNanos, {&arrivals, 1});
    traffic.restore(device->conservation().dropped);
    if (!acked) return;
    const Arrivals answers{0, traffic.acks()};
    if (!answers.packets.empty()) device->step(now += 1, {&answers, 1});
  };
  // Every flow is known before time is taken, and the memory that its next PSNs fall into has been touched.
  for (std::size_t i = 0; i < 2 * std::max<std::size_t>(flows, 1024) / kBurst && traffic.can(); i++) burst();
  {
    PerItem per_packet(state, kBurst);
    for (auto _ : state) {
      if (!traffic.can()) return state.SkipWithError("the packets ran out");
      burst();
    }
  }
  while (device->next_deadline() != kNever) device->step(device->next_deadline(), {});
  if (device->conservation().held() != 0) state.SkipWithError("packets went missing");
}
void kernel(benchmark::State& state) { run(state, kCases[state.range(0)]); }
BENCHMARK(kernel)
    ->ArgNames({"case", "flows"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, std::size(kCases) - 1, 1), {1, 64, 1024}});

BENCHMARK(kernel)->ArgNames({"case", "flows"})->ArgsProduct({{0}, {512, 8192}});  // beside what follows

void themis(benchmark::State& state) { run(state, kThemisCases[state.range(0)], kThemisCases[state.range(0)].in != 0); }
BENCHMARK(themis)
    ->ArgNames({"case", "flows"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, std::size(kThemisCases) - 1, 1), {1, 512, 8192}})
    ->Repetitions(2);

}  // namespace
}  // namespace rocebox::bench
