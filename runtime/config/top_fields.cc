// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/top_fields.h"

#include <fmt/format.h>

#include "runtime/config/name_ranges.h"
#include "runtime/config/topology.h"
#include "runtime/config/units.h"
#include "runtime/limits.h"

namespace rocebox::config {
namespace {

constexpr std::string_view kBump = "bump";

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

// Those that have come out behind the first `before`.
OptionValues behind(const OptionValues& values, std::size_t before) {
  return {values.begin() + static_cast<std::ptrdiff_t>(before), values.end()};
}

std::shared_ptr<KernelOptions> new_options(const Component& component, const Registry& registry) {
  return std::shared_ptr<KernelOptions>(static_cast<KernelOptions*>(component.options(registry).release()));
}

}  // namespace

void TopFields::read_defaults(KernelRow& row, const Registry& registry) {
  Mistakes none("");
  FieldsReader reader(nullptr, none);
  row.options = new_options(*row.type, registry);
  row.options->fields(reader);
  row.values = reader.values();
}

void TopFields::fields(ConfigFields& f) {
  fields_to_plugins(f);
  fields_from_devices(f);
}

void TopFields::fields_to_plugins(ConfigFields& f) {
  f.integer("seed", seed, {0, INT64_MAX}, "seed of all randomness; equal seeds give equal runs");
  f.duration("drain", drain, {0, 3600 * kSecond}, "how long a run goes on at its end, for what is still held");
  f.group("pool", "packets that can exist at once, by size; sized at start", [&](Fields& g) {
    g.integer("headers", pool_headers, {0, kPoolMax},
              "packets of up to 256 bytes: headers of simulated ones; more are small");
    g.integer("small", pool_small, {64, kPoolMax}, "packets of up to 2 KiB");
    g.integer("large", pool_large, {16, kPoolMax}, "packets of up to 9.5 KiB");
    g.integer("giant", pool_giant, {2, kPoolMax}, "packets of up to 64 KiB");
  });
  f.texts("plugins", plugins,
          "plugins to load, .so files that bring kernels, kinds of devices or programs of a switch");
}

void TopFields::fields_from_devices(ConfigFields& f) {
  f.values_by_name("parameters",
                   "values that stand as `$NAME` elsewhere, and which `rocebox sim --set NAME=VALUE` changes");
  f.named("devices", "instances with their own state, by name", names_of(devices),
          [&](ConfigFields& g, const std::string& name) { device_fields(g, row_of(devices, name)); });
  f.section("topology", "devices and links by the shape of the network", [](ConfigFields& g) {
    TopologyFields topology;
    topology.fields(g);
  });
  const Component* wire = registry_.wire();
  f.named(
      "links",
      fmt::format("wires between device ports, each an instance of the kernel `{}`, by name", wire ? wire->name : ""),
      names_of(links), [&](ConfigFields& g, const std::string& name) {
        Link& link = row_of(links, name);
        g.texts("between", link.between, "the two device ports; forward is from the first to the second");
        if (wire) fill(g, {name, wire->name, wire}, link.kernel);
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
        const std::size_t before = g.values().size();
        row.live.fields(g);
        row.live_values = behind(g.values(), before);
      });
  f.group("live", "how the live drive runs", [&](Fields& g) { live.fields(g); });
  if (!f.values().empty()) live_values = f.values().back().entries[0];
  f.named("workloads", "what hosts do, by name", names_of(workloads),
          [&](ConfigFields& g, const std::string& name) { workload_fields(g, row_of(workloads, name)); });
  f.named("schedule", "what changes while `rocebox sim` runs, such as links that fail, by name", names_of(schedule),
          [&](ConfigFields& g, const std::string& name) {
            ScheduleRow& row = row_of(schedule, name);
            g.duration("at", row.at, {0, 24 * 3600 * kSecond}, "when, from the beginning of the run");
            if (!g.given("at")) g.refuse("at", "must be given: when it happens");
            g.values_by_name("links", "options that change, by link, as under `links:`");
            g.values_by_name("devices", "options that change, by device, as under `devices:`");
          });
  f.group("sim", "how the virtual drive runs", [&](Fields& g) { sim.fields(g); });
  if (!f.values().empty()) sim_values = f.values().back().entries[0];
  f.texts("expect", expect,
          "conditions over the report, such as `bump.a.rx_packets == bump.b.tx_packets`; they decide the exit status");
}

void TopFields::device_fields(ConfigFields& f, Device& device) {
  f.text("pipeline", device.pipeline,
         "a ready-made pipeline: its name, or a file `x.yaml`; it has the path and the kernels, whose options may be "
         "given here, too");
  pipeline_fields(f, device);
}

void TopFields::pipeline_fields(ConfigFields& f, Device& device) {
  const std::vector<const Component*> kinds = registry_.of_kind(kDeviceKind);
  std::vector<std::string_view> words = {kBump};
  for (const Component* kind : kinds) words.emplace_back(kind->name);
  f.choice("kind", device.kind, words,
           "what the device is; one with the options of a kind, under its name, is of that kind");
  for (const Component* kind : kinds) {
    KernelRow row{device.name, kind->name, kind, new_options(*kind, registry_), {}};
    const Placement* placement = placement_of_ ? placement_of_(device.name) : nullptr;
    device.placed = placement != nullptr;
    if (placement && f.given(kind->name)) static_cast<DeviceOptions&>(*row.options).place(*placement);
    bool shown = false;
    f.alternative(kind->name, kind->summary, [&](Fields& g) {
      row.options->fields(g);
      shown = true;
    });
    if (!shown || !f.given(kind->name)) continue;
    if (device.whole.type)
      f.refuse(kind->name,
               fmt::format("and `{}:` exclude each other: a device is of one kind", device.whole.type->name));
    row.values = f.values().back().entries[0];
    device.whole = std::move(row);
  }
  f.texts("path", device.path, "the pipeline as arrows, such as `host <-> link <-> wire`");
  f.named("kernels", "kernels of the path by name", names_of(device.kernels),
          [&](ConfigFields& g, const std::string& name) { kernel_fields(g, row_of(device.kernels, name)); });
}

void TopFields::kernel_fields(ConfigFields& f, KernelRow& row) {
  if (row.type_name.empty() && row.name != "*") row.type_name = row.name;
  f.text("type", row.type_name, "the kernel type; the name itself when left out");
  row.type = registry_.find(kKernelKind, row.type_name);
  if (!row.type && row.name != "*") {
    std::vector<std::string> names;
    for (const Component* type : registry_.of_kind(kKernelKind)) names.emplace_back(type->name);
    if (registry_.find(kDeviceKind, row.type_name))
      f.refuse("type", fmt::format("names a whole device: give the device no path, but `{}:`", row.type_name));
    else
      f.refuse("type", fmt::format("names no kernel: `{}`{}", row.type_name, suggestion(row.type_name, names)));
    f.accept_rest();
  }
  const KernelRow named = row;
  f.component_options(kKernelKind, [&](Fields&) {
    if (named.type) fill(f, named, row);
  });
}

void TopFields::workload_fields(ConfigFields& f, Workload& workload) {
  if (workload.type_name.empty() && workload.name != "*") workload.type_name = workload.name;
  f.text("type", workload.type_name, "the type of workload; the name itself when left out");
  f.texts(
      "hosts", workload.hosts,
      "devices that it runs on, in this order (`h0..h15`: all from the one to the other); all hosts of the topology "
      "when left out");
  workload.hosts_good = expand_ranges(f, "hosts", workload.hosts, &workload.host_items);
  f.duration("start", workload.start, {0, 3600 * kSecond},
             "when it begins: in the run, or behind the end of the last of `after`");
  f.texts("after", workload.after, "workloads that must have finished before it begins");
  f.boolean("background", workload.background, "the run ends when all others have finished, and does not wait for it");
  workload.type = registry_.find(kWorkloadKind, workload.type_name);
  if (!workload.type && workload.name != "*") {
    std::vector<std::string> names;
    for (const Component* type : registry_.of_kind(kWorkloadKind)) names.emplace_back(type->name);
    f.refuse("type",
             fmt::format("names no workload: `{}`{}", workload.type_name, suggestion(workload.type_name, names)));
    f.accept_rest();
  }
  f.component_options(kWorkloadKind, [&](Fields&) {
    if (!workload.type) return;
    const std::size_t before = f.values().size();
    workload.options.reset(static_cast<WorkloadOptions*>(workload.type->options(registry_).release()));
    workload.options->fields(f);
    workload.values = behind(f.values(), before);
  });
}

void TopFields::fill(ConfigFields& f, const KernelRow& named, KernelRow& row) {
  const std::size_t before = f.values().size();
  row = named;
  row.options = new_options(*row.type, registry_);
  row.options->fields(f);
  row.values = behind(f.values(), before);
}

}  // namespace rocebox::config
