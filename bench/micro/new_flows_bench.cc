// SPDX-License-Identifier: BSD-3-Clause
// What the first packets of a flow cost in every kernel and program: 10,000 new QPs in a second, each with a packet of
// data and its ACK, through a device that is made as the live drive makes it. Beside it the same flows once they are
// known.
#include <fmt/format.h>

#include <algorithm>

#include "bench/micro/bump.h"
#include "bench/micro/packets.h"
#include "bench/micro/themis_options.h"
#include "runtime/flows/zeroed_array.h"
#include "runtime/limits.h"
#include "runtime/roce/address.h"

namespace rocebox::bench {
namespace {

constexpr std::size_t kFlows = 10'000, kFlowsOfThemis = 8'000;  // which has room for 8192 by default
constexpr Nanos kBetween = kSecond / 10'000;
// Each time a new device: what a flow costs in all of them is its own, and not the machine's.
constexpr unsigned kRounds = 3;
constexpr std::uint32_t kFirstQpn = 0x100, kPartnerQpns = 0x800000, kPayload = 1024;

constexpr Case kCases[] = {
    {"no kernel", "a <-> b", "{}"},
    {"inspect, 4096 flows", "a <-> inspect <-> b", "{inspect: {}}"},
    {"inspect, 32768 flows", "a <-> inspect <-> b", "{inspect: {flows: 32768, window: 2048}}"},
    {"link, 10 us delay", "a <-> link <-> b", "{link: {delay: 10us}}"},
    {"lowar, from the host", "a <-> lowar <-> b", "{lowar: {}}"},
    {"lowar, from the host, 16384 streams and units", "a <-> lowar <-> b",
     "{lowar: {streams: 16384, units: 16384, roce_mtu: 1024}}"},
    {"lowar, from the link, 16384 streams and units", "a <-> lowar <-> b",
     "{lowar: {streams: 16384, units: 16384, roce_mtu: 1024}}", 1},
    {"switch, L2, learning", nullptr, "{ports: [a, b], forward: {macs: [{mac: '02:00:00:00:00:02', ports: [b]}]}}"},
    {"switch, L3, four paths, behind a rule", nullptr,
     "{ports: [a, b, c, d, e], programs: [acl, forward], acl: {rules: [{match: {opcodes: [cnp]}, traffic_class: 5}]}, "
     "forward: {learning: false, router_mac: '02:00:00:00:00:02', routes: [{prefix: 0.0.0.0/0, via: [{port: b, mac: "
     "'02:00:00:00:00:02'}, {port: c, mac: '02:00:00:00:00:02'}, {port: d, mac: '02:00:00:00:00:02'}, {port: e, mac: "
     "'02:00:00:00:00:02'}]}]}}"},
    {"themis, at the sender's ToR", nullptr, kThemisSource},
    {"themis, at the receiver's ToR", nullptr, kThemisDestination, 1},
    {"themis, at the sender's ToR, nothing configured", nullptr, kThemisSource},
};
constexpr std::size_t kUnconfigured = std::size(kCases) - 1;

class NewFlows {
 public:
  NewFlows(const Case& which, bool configured) : which_(which) {
    std::mt19937 random(5);
    const std::string options = which.options;
    const bool themis = options.find("CONNECTIONS") != std::string::npos;
    for (std::size_t i = 0; i < (themis ? kFlowsOfThemis : kFlows); i++)
      flows_.push_back({underlay(4, random), draw(random, 1u << 24)});
    if (which.path) {
      text_ = fmt::format("{{path: {}, kernels: {}}}", which.path, options);
    } else {
      text_ = fmt::format("{{switch: {}}}", with(options, "CONNECTIONS", configured ? connections() : ""));
      if (themis && !configured) text_ = with(text_, "learning: false, connections", "learning: true, connections");
    }
    payload_.resize(kPayload);
    first_.assign(flows_.size(), ~std::uint64_t{0});
    known_ = first_;
  }

  /// False when its configuration has mistakes or packets went missing.
  bool round() {
    std::unique_ptr<Device> device;
    {
      const flows::TouchedWhenMade touched(kTouchedAtStartBytes);
      device = device_of(text_);
    }
    if (!device) return false;
    device->set_sink([](Port, std::span<Packet> out, Nanos) {
      for (Packet packet : out) rte_pktmbuf_free(packet.mbuf());
    });
    Nanos now = 0;
    for (auto* cost : {&first_, &known_}) {
      const std::uint64_t between = rte_get_tsc_hz() / 10'000;
      std::uint64_t due = rte_rdtsc();
      for (std::size_t i = 0; i < flows_.size(); i++, due += between, now += kBetween) {
        while (cost == &first_ && rte_rdtsc() < due) rte_pause();
        const std::uint32_t psn = flows_[i].psn + (cost == &known_);
        const std::uint64_t cycles =
            timed(*device, now, which_.in, data(i, psn)) + timed(*device, now + 1, Port(1 - which_.in), ack(i, psn));
        (*cost)[i] = std::min((*cost)[i], cycles);
      }
    }
    while (device->next_deadline() < now + 100 * kSecond) device->step(device->next_deadline(), {});
    return device->books().conservation().held() == 0;
  }

  void report(benchmark::State& state) {
    state.counters["flows"] = static_cast<double>(flows_.size());
    for (auto* cost : {&first_, &known_}) {
      std::sort(cost->begin(), cost->end());
      const std::string name = cost == &first_ ? "first" : "known";
      const auto put = [&](const char* what, std::size_t rank) {
        state.counters[name + what] = static_cast<double>((*cost)[rank]) / static_cast<double>(rte_get_tsc_hz()) * 1e9;
      };
      put("/p50", cost->size() / 2);
      put("/p99", cost->size() * 99 / 100);
      put("/max", cost->size() - 1);
    }
  }

 private:
  struct Flow {
    roce::Underlay underlay;
    std::uint32_t psn;
  };

  std::string connections() const {
    std::string text;
    for (std::size_t i = 0; i < flows_.size(); i++) {
      const roce::Addresses& ways = flows_[i].underlay.addresses;
      const std::size_t there = kFirstQpn + i, here = kPartnerQpns + i;
      const bool receivers = which_.in != 0;
      text += fmt::format("{{local: {}, local_qpn: {}, remote: {}, remote_qpn: {}}},",
                          roce::address_text(receivers ? ways.destination : ways.source), receivers ? there : here,
                          roce::address_text(receivers ? ways.source : ways.destination), receivers ? here : there);
    }
    return text;
  }
  roce::PacketSpec data(std::size_t flow, std::uint32_t psn) {
    roce::PacketSpec spec;
    spec.underlay = flows_[flow].underlay;
    spec.opcode = IBV_OPCODE_RC_RDMA_WRITE_ONLY;
    spec.destination_qp = static_cast<std::uint32_t>(kFirstQpn + flow);
    spec.psn = psn & 0xFFFFFF;
    spec.dma_length = kPayload;
    spec.payload = payload_;
    return spec;
  }
  roce::PacketSpec ack(std::size_t flow, std::uint32_t psn) {
    roce::PacketSpec spec;
    spec.underlay = flows_[flow].underlay;
    std::swap(spec.underlay.addresses.source, spec.underlay.addresses.destination);
    spec.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
    spec.destination_qp = static_cast<std::uint32_t>(kPartnerQpns + flow);
    spec.psn = psn & 0xFFFFFF;
    spec.syndrome = 0x1F;
    return spec;
  }
  static std::uint64_t timed(Device& device, Nanos now, Port in, const roce::PacketSpec& spec) {
    PacketPtr made = pool().allocate(roce::built_bytes(spec));
    if (!made) return 0;  // the conservation shows it
    roce::build(*made, spec);
    Packet packet = made.release();
    const Arrivals arrivals{in, {&packet, 1}};
    while (device.next_deadline() < now) device.step(device.next_deadline(), {});
    const std::uint64_t begun = rte_rdtsc();
    device.step(now, {&arrivals, 1});
    return rte_rdtsc() - begun;
  }

  const Case& which_;
  std::string text_;
  std::vector<Flow> flows_;
  std::vector<std::uint8_t> payload_;
  std::vector<std::uint64_t> first_, known_;  // cycles of a flow, the least of all rounds
};

void new_flows(benchmark::State& state) {
  const Case& which = kCases[state.range(0)];
  state.SetLabel(which.label);
  NewFlows flows(which, state.range(0) != static_cast<std::int64_t>(kUnconfigured));
  for (auto _ : state)
    for (unsigned i = 0; i < kRounds; i++)
      if (!flows.round()) return state.SkipWithError("its configuration has mistakes, or packets went missing");
  flows.report(state);
}
BENCHMARK(new_flows)
    ->ArgName("case")
    ->DenseRange(0, std::size(kCases) - 1)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rocebox::bench
