// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/cli/commands.h"
#include "runtime/drives/testbed.h"
#include "runtime/kernel/stimulus.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox::cli {
namespace {

constexpr std::uint32_t kPsns[] = {0, 1, 1, 9, 4, 0xFFFFFF};  // in order, again, ahead, late, wrapped
constexpr unsigned kTimersMax = 10'000;
constexpr Nanos kStep = kMicrosecond;

const char* strict_option(const config::KernelConfig& kernel) { return kernel.type->strict_option; }

config::DeviceConfig made_strict(config::DeviceConfig device) {
  for (config::KernelConfig& kernel : device.kernels) {
    if (!strict_option(kernel)) continue;
    std::erase_if(kernel.options.entries,
                  [&](const config::Entry& entry) { return entry.key == strict_option(kernel); });
    config::Node yes;
    yes.kind = config::Node::Kind::kScalar;
    yes.scalar = "true";
    kernel.options.entries.push_back({strict_option(kernel), {}, yes});
  }
  return device;
}

// What makes the device do something; at least one packet's headers.
std::vector<Stimulus> stimuli_of(Device& device, std::size_t kernels) {
  std::vector<Stimulus> all;
  for (unsigned i = 0; i < kernels; i++) device.kernel(i).stimuli(all);
  if (!all.empty()) return all;
  Stimulus any;
  any.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 1, 1)};
  return {any};
}

// Every known opcode, in both directions of a pair, by every port.
void send_all(Device& device, Pool& pool, std::size_t kernels) {
  static const std::vector<std::uint8_t> kPayload(256, 0x5A);
  std::vector<Stimulus> stimuli = stimuli_of(device, kernels);
  Nanos now = 0;
  const auto send = [&](Port in, std::uint32_t bytes, auto fill) {
    PacketPtr made = pool.allocate(bytes);
    if (!made) return;
    fill(*made);
    Packet packet = made.release();
    const Arrivals arrivals{in, {&packet, 1}};
    device.step(now += kStep, {&arrivals, 1});
  };
  for (Stimulus& stimulus : stimuli) {
    roce::Underlay& underlay = stimulus.underlay;
    for (Port in = 0; in < device.ports().size(); in++) {
      if (!stimulus.frame.empty()) {
        send(in, static_cast<std::uint32_t>(stimulus.frame.size()),
             [&](Packet packet) { std::ranges::copy(stimulus.frame, packet.data()); });
        continue;
      }
      for (unsigned opcode = 0; opcode < 256; opcode++) {
        if (!roce::opcode_info(static_cast<std::uint8_t>(opcode)).has(roce::kIsKnown)) continue;
        for (const std::uint32_t psn : kPsns) {
          roce::PacketSpec spec;
          spec.underlay = underlay;
          spec.opcode = static_cast<std::uint8_t>(opcode);
          spec.destination_qp = stimulus.destination_qp ? stimulus.destination_qp : 0x11u + opcode % 2;
          spec.psn = psn;
          spec.syndrome = psn % 2 ? 0x60 : 0;  // NAK, ACK
          if (roce::opcode_info(spec.opcode).has(roce::kHasPayload)) spec.payload = kPayload;
          send(in, roce::built_bytes(spec), [&](Packet packet) { roce::build(packet, spec); });
        }
      }
      std::swap(underlay.addresses.source, underlay.addresses.destination);
    }
  }
  for (unsigned i = 0; i < kTimersMax && device.next_deadline() != kNever; i++) device.step(device.next_deadline(), {});
}

// What a kernel reports of its violations, and what the packets above did not come to; true when nothing is wrong.
bool tell_violations(const std::string& device, const Json& violations, const Json& not_judged) {
  for (const Json& row : violations)
    fmt::print("# device {}: {} ({} times)\n", device, row["what"].get<std::string>(),
               row["times"].get<std::int64_t>());
  if (violations.empty()) fmt::print("# device {}: strict: no access that the hardware could not do\n", device);
  std::map<std::string, std::vector<std::string>> unreached;  // by program
  for (const Json& row : not_judged) unreached[row["program"]].push_back(row["resource"]);
  for (const auto& [program, resources] : unreached)
    fmt::print("# device {}: strict: program {}: no trial packet came to {}\n", device, program,
               fmt::join(resources, ", "));
  return violations.empty();
}

}  // namespace

bool models_hardware(const config::DeviceConfig& device) {
  return std::any_of(device.kernels.begin(), device.kernels.end(), strict_option);
}

bool check_hardware(const config::RunConfig& config, bool strict, bool resources) {
  bool good = true;
  Pool pool = make_pool(config);
  for (const config::DeviceConfig& written : config.devices) {
    if (!models_hardware(written)) continue;
    const config::DeviceConfig made = made_strict(written);
    std::unique_ptr<Device> device;
    try {
      device = make_device(made, pool, static_cast<std::uint64_t>(config.seed));
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}:{}:{}: device `{}` does not fit its profile\n{}", config.file,
                                    written.place.line, written.place.column, written.name, error.what()));
    }
    device->set_sink([](Port, std::span<Packet> packets, Nanos) {
      for (Packet packet : packets) rte_pktmbuf_free(packet.mbuf());
    });
    if (strict) send_all(*device, pool, made.kernels.size());
    Json report;
    JsonReport writer(report);
    device->report(writer);
    for (const config::KernelConfig& kernel : made.kernels) {
      if (!strict_option(kernel)) continue;
      const Json& told = report["kernels"][kernel.name];
      if (resources) fmt::print("{}", report_text(Json{{written.name, told["layout"]}}));
      if (strict) good &= tell_violations(written.name, told["violations"], told["not_judged"]);
    }
  }
  return good;
}

}  // namespace rocebox::cli
