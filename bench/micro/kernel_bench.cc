// SPDX-License-Identifier: BSD-3-Clause
// What a kernel costs: a bump with it on RDMA WRITE packets of 1024 B, beside a bump without kernels.
#include <fmt/format.h>

#include "bench/micro/bump.h"
#include "bench/micro/themis_options.h"
#include "bench/micro/traffic.h"

namespace rocebox::bench {
namespace {

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
constexpr Case kThemisCases[] = {
    {"themis, from the sender's NIC, four paths", nullptr, kThemisSource, 0},
    {"themis, to the receiver's NIC, an ACK for 16 packets", nullptr, kThemisDestination, 1},
};

// Data come by the second port, their ACKs by the first.
constexpr Case kScrCases[] = {
    {"scr, data and ACKs, rates alone", "a <-> scr <-> b", "{scr: {}}", 1},
    {"scr, data and ACKs, water filling", "a <-> scr <-> b", "{scr: {policy: fair}}", 1},
    {"scr, data and ACKs, Swift", "a <-> scr <-> b", "{scr: {policy: swift}}", 1},
    {"scr, data and ACKs, a program for PCC", "a <-> scr <-> b", "{scr: {pcc: {program: rtt_control}}}", 1},
};

std::unique_ptr<Device> make(const Case& which, const Traffic& traffic) {
  if (which.path) return make_bump(which.path, which.options);
  return device_of(fmt::format("{{switch: {}}}", with_connections(which.options, traffic, which.in != 0)));
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
    traffic.restore(device->books().conservation().dropped);
    if (!acked) return;
    const Arrivals responses{0, traffic.acks()};
    if (!responses.packets.empty()) device->step(now += 1, {&responses, 1});
  };
  // Every flow is known before time is taken, and the memory that its next PSNs fall into has been touched.
  for (std::size_t i = 0; i < traffic.warm_up_bursts() && traffic.can(); i++) burst();
  {
    PerItem per_packet(state, kBurst);
    for (auto _ : state) {
      if (!traffic.can()) return state.SkipWithError("the packets ran out");
      burst();
    }
  }
  while (device->next_deadline() != kNever) device->step(device->next_deadline(), {});
  if (device->books().conservation().held() != 0) state.SkipWithError("packets went missing");
}
void kernel(benchmark::State& state) { run(state, kCases[state.range(0)]); }
BENCHMARK(kernel)
    ->ArgNames({"case", "flows"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, std::size(kCases) - 1, 1), {1, 64, 1024}});

void observed(benchmark::State& state) { run(state, kScrCases[state.range(0)], true); }
BENCHMARK(observed)
    ->ArgNames({"case", "flows"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, std::size(kScrCases) - 1, 1), {1, 64, 1024}});

BENCHMARK(kernel)->ArgNames({"case", "flows"})->ArgsProduct({{0}, {512, 8192}});  // beside what follows

void themis(benchmark::State& state) { run(state, kThemisCases[state.range(0)], kThemisCases[state.range(0)].in != 0); }
BENCHMARK(themis)
    ->ArgNames({"case", "flows"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, std::size(kThemisCases) - 1, 1), {1, 512, 8192}})
    ->Repetitions(2);

}  // namespace
}  // namespace rocebox::bench
