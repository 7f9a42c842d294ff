// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/cli/commands.h"
#include "runtime/drives/testbed.h"
#include "runtime/kernel/stimulus.h"
#include "runtime/roce/headers.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox::cli {
namespace {

constexpr std::uint32_t kPsns[] = {0, 1, 1, 9, 4, 0xFFFFFF};  // in order, again, ahead, late, wrapped
constexpr unsigned kTimersMax = 10'000;
constexpr Nanos kStep = kMicrosecond;

// What makes the device do something; at least one packet's headers.
std::vector<Stimulus> stimuli_of(Device& device, std::size_t kernels) {
  std::vector<Stimulus> all;
  for (unsigned i = 0; i < kernels; i++) device.kernel(i).stimuli(all);
  if (!all.empty()) return all;
  Stimulus any;
  any.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 1, 1)};
  return {any};
}

// Sends trial packets, a microsecond apart.
class Sender {
 public:
  Sender(Device& device, Pool& pool) : device_(device), pool_(pool) {}

  void send(const Stimulus& stimulus) {
    for (Port in = 0; in < device_.ports().size(); in++)
      if (!stimulus.in || *stimulus.in == in) send(stimulus, in);
  }
  void run_out() {
    for (unsigned i = 0; i < kTimersMax && device_.next_deadline() != kNever; i++)
      device_.step(device_.next_deadline(), {});
  }

 private:
  void send(const Stimulus& stimulus, Port in) {
    if (!stimulus.frame.empty())
      return give(in, static_cast<std::uint32_t>(stimulus.frame.size()),
                  [&](Packet packet) { std::ranges::copy(stimulus.frame, packet.data()); });
    if (!stimulus.packet) return send_all(stimulus, in);
    roce::PacketSpec spec = *stimulus.packet;
    spec.payload = stimulus.payload;
    give(in, roce::built_bytes(spec), [&](Packet packet) {
      roce::build(packet, spec);
      roce::bth(packet).fecn_becn_resv6 |= stimulus.bth_reserved;
    });
  }
  // Every known opcode, in both directions of a pair: the next port is the other end's.
  void send_all(const Stimulus& stimulus, Port in) {
    static const std::vector<std::uint8_t> kPayload(256, 0x5A);
    for (unsigned opcode = 0; opcode < 256; opcode++) {
      if (!roce::opcode_info(static_cast<std::uint8_t>(opcode)).has(roce::kIsKnown)) continue;
      for (const std::uint32_t psn : kPsns) {
        roce::PacketSpec spec;
        spec.underlay = stimulus.underlay;
        if (in % 2) std::swap(spec.underlay.addresses.source, spec.underlay.addresses.destination);
        spec.opcode = static_cast<std::uint8_t>(opcode);
        spec.destination_qp = stimulus.destination_qp ? stimulus.destination_qp : 0x11u + opcode % 2;
        spec.psn = psn;
        spec.syndrome = psn % 2 ? 0x60 : 0;  // NAK, ACK
        if (roce::opcode_info(spec.opcode).has(roce::kHasPayload)) spec.payload = kPayload;
        give(in, roce::built_bytes(spec), [&](Packet packet) { roce::build(packet, spec); });
      }
    }
  }
  void give(Port in, std::uint32_t bytes, auto fill) {
    PacketPtr made = pool_.allocate(bytes);
    if (!made) return;
    fill(*made);
    Packet packet = made.release();
    const Arrivals arrivals{in, {&packet, 1}};
    device_.step(now_ += kStep, {&arrivals, 1});
  }

  Device& device_;
  Pool& pool_;
  Nanos now_ = 0;
};

// What a kernel reports of its violations, and what the packets above did not come to; true when nothing is wrong, and
// all was judged that is not accepted unjudged.
bool tell_violations(const std::string& device, const Json& told) {
  for (const Json& row : told["violations"])
    fmt::print("# device {}: {} ({} times)\n", device, row["what"].get<std::string>(),
               row["times"].get<std::int64_t>());
  bool good = told["violations"].empty();
  if (good) fmt::print("# device {}: strict: no access that the hardware could not do\n", device);
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> unused;  // by program and reason
  for (const Json& row : told["unused"]) unused[{row["program"], row["why"]}].push_back(row["resource"]);
  for (const auto& [why, resources] : unused)
    fmt::print("# device {}: strict: program {}: not in use, since {}: {}\n", device, why.first, why.second,
               fmt::join(resources, ", "));
  std::map<std::pair<std::string, bool>, std::vector<std::string>> unreached;  // by program, and whether accepted
  for (const Json& row : told["not_judged"])
    unreached[{row["program"], row["accepted"].get<bool>()}].push_back(row["resource"]);
  for (const auto& [whose, resources] : unreached) {
    const auto& [program, accepted] = whose;
    fmt::print("# device {}: strict: program {}: no trial packet came to {}{}\n", device, program,
               fmt::join(resources, ", "), accepted ? ", which is accepted" : "");
    if (accepted) continue;
    good = false;
    std::vector<std::string> names;
    for (const std::string& resource : resources) names.push_back(program + "." + resource);
    fmt::print(
        "# device {}: strict: not judged is not good: give {} what leads there, or write `accept_unjudged: [{}]`\n",
        device, program, fmt::join(names, ", "));
  }
  for (const Json& row : told["accepted_and_judged"])
    fmt::print("# device {}: strict: `accept_unjudged` need not name {}: a trial packet came there, or none can\n",
               device, row["resource"].get<std::string>());
  return good;
}

}  // namespace

bool models_hardware(const config::DeviceConfig& device) {
  return std::ranges::any_of(device.kernels, [](const auto& kernel) { return kernel.options->models_hardware(); });
}

bool check_hardware(const config::RunConfig& config, bool strict, bool resources) {
  bool good = true;
  Pool pool = make_pool(config);
  for (const config::DeviceConfig& written : config.devices) {
    if (!models_hardware(written)) continue;
    std::unique_ptr<Device> device;
    try {
      device = make_device(written, pool, static_cast<std::uint64_t>(config.seed), Hardware::kStrict);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: device `{}` does not fit its profile\n{}", config.place_text(written.place),
                                    written.name, error.what()));
    }
    device->set_sink([](Port, std::span<Packet> packets, Nanos) {
      for (Packet packet : packets) rte_pktmbuf_free(packet.mbuf());
    });
    if (strict) {
      Sender sender(*device, pool);
      for (const Stimulus& stimulus : stimuli_of(*device, written.kernels.size())) sender.send(stimulus);
      sender.run_out();
    }
    Json report;
    JsonReport writer(report);
    device->books().report(writer);
    for (const config::KernelConfig& kernel : written.kernels) {
      if (!kernel.options->models_hardware()) continue;
      const Json& told = report["kernels"][kernel.name];
      if (resources) fmt::print("{}", report_text(Json{{written.name, told["layout"]}}));
      if (strict) good &= tell_violations(written.name, told);
    }
  }
  return good;
}

}  // namespace rocebox::cli
