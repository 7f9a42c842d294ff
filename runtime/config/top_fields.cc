// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/top_fields.h"

#include <fmt/format.h>

#include "runtime/config/units.h"
#include "runtime/limits.h"

namespace rocebox::config {
namespace {

constexpr std::string_view kDeviceKinds[] = {"bump", "switch"};

template <class Row>
std::vector<std::string> names_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

// The row of that name; a new one while reading.
template <class Row>
Row& row_of(std::vector<Row>& rows, const std::string& name) {
  for (Row& row : rows)
    if (row.name == name) return row;
  rows.emplace_back().name = name;
  return rows.back();
}

}  // namespace

void TopFields::fields(ConfigFields& f) {
  f.integer("seed", seed, {0, INT64_MAX}, "seed of all randomness; equal seeds give equal runs");
  f.duration("drain", drain, {0, 3600 * kSecond},
             "virtual time that a replay goes on after its last packet, for what is still held");
  f.group("pool", "packets that can exist at once, by size; sized at start", [&](Fields& g) {
    g.integer("small", pool_small, {64, kPoolMax}, "packets of up to 2 KiB");
    g.integer("large", pool_large, {16, kPoolMax}, "packets of up to 9.5 KiB");
    g.integer("giant", pool_giant, {2, kPoolMax}, "packets of up to 64 KiB");
  });
  f.texts("plugins", plugins, "kernel plugins to load, .so files");
  f.named("devices", "instances with their own state, by name", names_of(devices),
          [&](ConfigFields& g, const std::string& name) { device_fields(g, row_of(devices, name)); });
  f.named("links", "wires between device ports, each an instance of the kernel `link`, by name", names_of(links),
          [&](ConfigFields& g, const std::string& name) {
            g.texts("between", row_of(links, name).between,
                    "the two device ports; forward is from the first to the second");
            if (const KernelType* link = registry_.find("link")) link->make(g, nullptr);
          });
  f.named(
      "ports", "what device ports are bound to, by `device.port` or `port`", names_of(ports),
      [&](ConfigFields& g, const std::string& name) {
        PortRow& row = row_of(ports, name);
        g.group("pcap", "capture files", [&](Fields& h) {
          h.texts("in", row.in, "captures whose packets arrive here, merged by time; `-` is standard input");
          h.text(
              "filter", row.filter,
              "libpcap filter that chooses packets of `in`, such as `ip src 10.0.0.1`; looks behind VLAN tags unless "
              "it says `vlan` or `ether[...]`");
          h.text("out", row.out,
                 "capture that receives what leaves here: .pcap or .pcapng; `-` is standard output, `-.pcapng` too");
          h.text("pace", row.pace,
                 "when live: `as_captured`, by the timestamps; a factor, such as `10x` or `0.5x`; or `max`, as fast as "
                 "packets are taken");
          if (!parse_pace(row.pace))
            h.refuse(
                "pace",
                fmt::format("must be `as_captured`, `max`, or a factor from 0.001x to 1000000x; found `{}`", row.pace));
          h.integer("loop", row.loop, {0, INT64_C(1) << 32},
                    "when live: how often the captures are sent; 0: until the run is stopped");
        });
        row.live.fields(g);
      });
  f.group("live", "how the live drive runs", [&](Fields& g) { live.fields(g); });
  f.texts("expect", expect, "conditions over the report, such as `tap.inspect.naks == 0`; they decide the exit status");
}

void TopFields::device_fields(ConfigFields& f, Device& device) {
  f.text("pipeline", device.pipeline,
         "a ready-made pipeline: its name, or a file `x.yaml`; it has the path and the kernels, whose options may be "
         "given here, too");
  pipeline_fields(f, device);
}

void TopFields::pipeline_fields(ConfigFields& f, Device& device) {
  f.choice("kind", device.kind, kDeviceKinds, "what the device is; one with `switch:` is a switch");
  if (const KernelType* type = registry_.find("switch")) {
    f.group("switch", type->summary, [&](Fields& g) { type->make(g, nullptr); });
    device.is_switch = f.given("switch");
  }
  f.texts("path", device.path, "the pipeline as arrows, such as `host <-> link <-> wire`");
  f.named("kernels", "kernels of the path by name", names_of(device.kernels),
          [&](ConfigFields& g, const std::string& name) { kernel_fields(g, row_of(device.kernels, name)); });
}

void TopFields::kernel_fields(ConfigFields& f, KernelRow& row) {
  if (row.type_name.empty() && row.name != "*") row.type_name = row.name;
  f.text("type", row.type_name, "the kernel type; the name itself when left out");
  row.type = registry_.find(row.type_name);
  if (!row.type && row.name != "*") {
    std::vector<std::string> names;
    for (const KernelType* type : registry_.types()) names.emplace_back(type->name);
    f.refuse("type", fmt::format("names no kernel: `{}`{}", row.type_name, suggestion(row.type_name, names)));
    f.accept_rest();
  }
  f.kernel_options([&](Fields& g) {
    if (row.type) row.type->make(g, nullptr);
  });
}

}  // namespace rocebox::config
