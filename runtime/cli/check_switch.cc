// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "runtime/cli/commands.h"
#include "runtime/drives/testbed.h"
#include "runtime/roce/address.h"
#include "runtime/roce/build.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox::cli {
namespace {

constexpr std::uint32_t kPsns[] = {0, 1, 1, 9, 4, 0xFFFFFF};  // in order, again, ahead, late, wrapped
constexpr std::size_t kDestinationsMax = 16;
constexpr unsigned kTimersMax = 10'000;
constexpr Nanos kStep = kMicrosecond;

config::DeviceConfig made_strict(config::DeviceConfig device) {
  config::Node& options = device.kernels[0].options;
  std::erase_if(options.entries, [](const config::Entry& entry) { return entry.key == "strict"; });
  config::Node yes;
  yes.kind = config::Node::Kind::kScalar;
  yes.scalar = "true";
  options.entries.push_back({"strict", {}, yes});
  return device;
}

// What makes programs do something: packets to the router's address and into its prefixes, where there are any.
std::vector<roce::Underlay> underlays(const config::Node& options) {
  roce::Underlay underlay;
  const config::Node* forward = options.find("forward");
  const config::Node* router = forward ? forward->find("router_mac") : nullptr;
  if (router)
    for (std::size_t i = 0; i < 6 && router->scalar.size() == 17; i++)
      underlay.destination_mac[i] = static_cast<std::uint8_t>(std::stoul(router->scalar.substr(3 * i, 2), nullptr, 16));
  underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 1, 1)};
  std::vector<roce::Underlay> all = {underlay};
  const config::Node* routes = forward ? forward->find("routes") : nullptr;
  for (std::size_t i = 0; routes && i < routes->items.size() && i < kDestinationsMax; i++) {
    const config::Node* prefix = routes->items[i].find("prefix");
    if (!prefix) continue;
    const std::string address = prefix->scalar.substr(0, prefix->scalar.find('/'));
    underlay.ip_version = address.find(':') == std::string::npos ? 4 : 6;
    if (roce::parse_address(address, underlay.addresses.destination)) all.push_back(underlay);
  }
  return all;
}

// Every known opcode, in both directions of a pair, by every port.
void send_all(Device& device, Pool& pool, const config::Node& options) {
  static const std::vector<std::uint8_t> kPayload(256, 0x5A);
  Nanos now = 0;
  const auto send = [&](Port in, const roce::PacketSpec& spec) {
    PacketPtr made = pool.allocate(roce::built_bytes(spec));
    if (!made) return;
    roce::build(*made, spec);
    Packet packet = made.release();
    const Arrivals arrivals{in, {&packet, 1}};
    device.step(now += kStep, {&arrivals, 1});
  };
  for (roce::Underlay underlay : underlays(options)) {
    for (Port in = 0; in < device.ports().size(); in++) {
      for (unsigned opcode = 0; opcode < 256; opcode++) {
        if (!roce::opcode_info(static_cast<std::uint8_t>(opcode)).has(roce::kIsKnown)) continue;
        for (const std::uint32_t psn : kPsns) {
          roce::PacketSpec spec;
          spec.underlay = underlay;
          spec.opcode = static_cast<std::uint8_t>(opcode);
          spec.destination_qp = 0x11u + opcode % 2;
          spec.psn = psn;
          spec.syndrome = psn % 2 ? 0x60 : 0;  // NAK, ACK
          if (roce::opcode_info(spec.opcode).has(roce::kHasPayload)) spec.payload = kPayload;
          send(in, spec);
        }
      }
      std::swap(underlay.addresses.source, underlay.addresses.destination);
    }
  }
  for (unsigned i = 0; i < kTimersMax && device.next_deadline() != kNever; i++) device.step(device.next_deadline(), {});
}

}  // namespace

bool check_switches(const config::RunConfig& config, bool strict, bool resources) {
  bool good = true;
  Pool pool(config.pool);
  for (const config::DeviceConfig& written : config.devices) {
    if (written.kind != config::DeviceKind::kSwitch) continue;
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
    if (strict) send_all(*device, pool, made.kernels[0].options);
    Json report;
    JsonReport writer(report);
    device->report(writer);
    const Json& kernel = report["kernels"]["switch"];
    if (resources) fmt::print("{}", report_text(Json{{written.name, kernel["layout"]}}));
    if (!strict) continue;
    const Json& violations = kernel["violations"];
    for (const Json& row : violations)
      fmt::print("# device {}: {} ({} times)\n", written.name, row["what"].get<std::string>(),
                 row["times"].get<std::int64_t>());
    if (violations.empty()) fmt::print("# device {}: strict: no access that the hardware could not do\n", written.name);
    good &= violations.empty();
  }
  return good;
}

}  // namespace rocebox::cli
