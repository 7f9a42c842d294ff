// SPDX-License-Identifier: BSD-3-Clause
// Hosts with NICs at one switch that floods groups, each by a wire of its own; workloads from YAML, and what they
// report.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/kernel/workload.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {

class Star {
 public:
  /// `nic` and `link` are further options of all NICs and wires; `link_of` those of one host's wire. `packets` are all
  /// that there are at a time.
  Star(unsigned hosts, const std::string& nic, const std::string& link, std::uint64_t seed = 1,
       const std::map<unsigned, std::string>& link_of = {}, unsigned packets = 32768)
      : pool({.small = packets, .large = 64, .giant = 2}),
        fabric([](FabricPort, std::span<Packet>, Nanos) {}),
        seed_(seed) {
    std::string ports;
    for (unsigned i = 0; i < hosts; i++) ports += (i ? ", p" : "p") + std::to_string(i);
    options.push_back(nic_test_options(
        "switch", "ports: [" + ports + "]\ntraffic_manager: {rate: 100Gbps, buffer: 16MiB, packets: 65536}"));
    add("s", 0, Shape::kOneWay, hosts);
    for (unsigned i = 0; i < hosts; i++) {
      options.push_back(
          nic_test_options("nic", "address: 10.0.0." + std::to_string(i + 1) + "\nrate: 100Gbps\n" + nic));
      const unsigned device = add("h", options.size() - 1, Shape::kOneWay, 1);
      HostSide* side = devices[device]->host_side();
      side->set_waker([this, device] { fabric.wake(device); });
      all.push_back({"h" + std::to_string(i), side});
      options.push_back(nic_test_options("link", link_of.contains(i) ? link_of.at(i) : link));
      const unsigned wire = add("w", options.size() - 1, Shape::kTwoSided, 2);
      fabric.join({device, 0}, {wire, 0});
      fabric.join({wire, 1}, {0, static_cast<Port>(i)});
    }
  }
  unsigned add(const std::string& name, std::size_t option, Shape shape, unsigned count) {
    std::vector<std::string> ports;
    std::vector<Edge> in, out;
    for (unsigned p = 0; p < count; p++) {
      ports.push_back("p" + std::to_string(p));
      in.push_back({0, static_cast<Port>(p)});
      out.push_back({Edge::kOutside, static_cast<Port>(p)});
    }
    std::vector<KernelPlan> plans;
    plans.push_back({"k", "k", shape, out, [this, option](Stats& stats) { return options[option]->make(stats); }});
    devices.push_back(std::make_unique<PipelineDevice>(name + std::to_string(devices.size()), ports, in,
                                                       std::move(plans), pool, seed_));
    devices.back()->set_batch_max(1);
    return fabric.add(*devices.back());
  }
  /// Until `done` says so, or `limit`.
  template <class Done>
  void run(Done&& done, Nanos limit) {
    fabric.run(now);
    while (!done() && fabric.next_deadline() < limit) fabric.run(now = fabric.next_deadline());
  }

  /// From now on a host's wire has other options.
  void link(unsigned host, const std::string& yaml) {
    Kernel& kernel = devices[2 + 2 * host]->kernel(0);
    const std::unique_ptr<Change> change = nic_test_options("link", yaml)->change(kernel);
    change->apply(kernel, now);
  }

  void run(Workload& workload) {
    workload.start(0);
    run([&] { return workload.finished(); }, 100 * kSecond);
  }

  Pool pool;
  std::vector<std::unique_ptr<KernelOptions>> options;
  std::vector<std::unique_ptr<PipelineDevice>> devices;
  std::vector<WorkloadHost> all;
  Fabric fabric;
  Nanos now = 0;

 private:
  std::uint64_t seed_;
};

/// Fails the test where the YAML has mistakes.
inline std::unique_ptr<WorkloadOptions> workload_options(const std::string& name, const std::string& yaml) {
  return std::unique_ptr<WorkloadOptions>(static_cast<WorkloadOptions*>(options_from(name, yaml).release()));
}

/// The numbers and texts of a report.
struct NumbersOf final : Report {
  std::map<std::string, double> values;
  std::map<std::string, std::string> texts;
  void count(std::string_view name, std::int64_t value) override {
    values[std::string(name)] = static_cast<double>(value);
  }
  void real(std::string_view name, double value) override { values[std::string(name)] = value; }
  void flag(std::string_view, bool) override {}
  void text(std::string_view name, std::string_view text) override { texts[std::string(name)] = text; }
  void duration(std::string_view name, std::int64_t nanos) override { count(name, nanos); }
  void object(std::string_view, const std::function<void(Report&)>&) override {}
  void table(std::string_view, std::size_t, const std::function<void(Report&, std::size_t)>&) override {}
};

}  // namespace rocebox::test
