// SPDX-License-Identifier: BSD-3-Clause
// Hosts with NICs at one switch that floods groups, each by a wire of its own, and an application whose buffers are
// looked at when they are released, and scribbled over.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/allgather/host/team.h"
#include "nic_model/nic.h"
#include "runtime/engine/fabric.h"
#include "runtime/engine/pipeline_device.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::allgather::test {

class Star {
 public:
  /// `nic` and `link` are further options of all NICs and wires; `link_of` those of one host's wire.
  Star(unsigned hosts, const std::string& nic, const std::string& link, std::uint64_t seed = 1,
       const std::map<unsigned, std::string>& link_of = {})
      : pool({.small = 32768, .large = 64, .giant = 2}),
        fabric([](FabricPort, std::span<Packet>, Nanos) {}),
        seed_(seed) {
    std::string ports;
    for (unsigned i = 0; i < hosts; i++) ports += (i ? ", p" : "p") + std::to_string(i);
    options.push_back(rocebox::test::nic_test_options(
        "switch", "ports: [" + ports + "]\ntraffic_manager: {rate: 100Gbps, buffer: 16MiB, packets: 65536}"));
    add("s", 0, Shape::kOneWay, hosts);
    for (unsigned i = 0; i < hosts; i++) {
      options.push_back(rocebox::test::nic_test_options(
          "nic", "address: 10.0.0." + std::to_string(i + 1) + "\nrate: 100Gbps\n" + nic));
      const unsigned device = add("h", options.size() - 1, Shape::kOneWay, 1);
      HostSide* side = devices[device]->host_side();
      side->set_waker([this, device] { fabric.wake(device); });
      all.push_back({"h" + std::to_string(i), side});
      options.push_back(rocebox::test::nic_test_options("link", link_of.contains(i) ? link_of.at(i) : link));
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

  Pool pool;
  std::vector<std::unique_ptr<KernelOptions>> options;
  std::vector<std::unique_ptr<PipelineDevice>> devices;
  std::vector<WorkloadHost> all;
  Fabric fabric;
  Nanos now = 0;

 private:
  std::uint64_t seed_;
};

/// Runs `operations` at all ranks, those of one communicator and place one after the other.
class Judge final : public Application {
 public:
  Judge(Star& star, const TeamOptions& options, std::vector<Operation> operations)
      : star_(star), options_(options), operations_(std::move(operations)), team(star.all, options_, *this) {}

  void run(Nanos limit = 20 * kSecond) {
    team.connect();
    star_.run([this] { return left() == 0; }, limit);
    // What is still under way may come: nobody's buffer changes any more.
    star_.run([] { return false; }, star_.now + 10 * kMillisecond);
    for (const auto& [key, memory] : memory_)
      for (const std::uint8_t byte : memory) ASSERT_EQ(byte, 0xDD) << "written after it was released";
  }
  std::size_t left() const { return operations_.size() * team.ranks() - ended; }
  static std::uint8_t right(const Operation& o, unsigned block, std::uint64_t offset) {
    return static_cast<std::uint8_t>(block * 101 + o.sequence * 37 + o.communicator * 17 + offset * 5 + offset / 256);
  }

  std::size_t ended = 0, wrong = 0, whole = 0;
  std::map<End, unsigned> failed;
  std::uint64_t hash = 0;

 private:
  void on_connected(Nanos) override {
    for (unsigned rank = 0; rank < team.ranks(); rank++)
      for (const Operation& o : operations_)
        if (o.sequence < options_.outstanding) begin(rank, o);
  }
  void begin(unsigned rank, const Operation& o) {
    auto& memory = memory_[{rank, o.communicator, o.sequence}];
    const unsigned blocks = o.root >= 0 ? 1 : team.ranks();
    memory.assign(blocks * o.block_bytes, 0xEE);
    for (unsigned block = 0; block < blocks; block++)
      if (o.root >= 0 ? static_cast<unsigned>(o.root) == rank : block == rank)
        for (std::uint64_t i = 0; i < o.block_bytes; i++) memory[block * o.block_bytes + i] = right(o, block, i);
    // Registered by address: each its own.
    const std::uint64_t address = (std::uint64_t{o.communicator} << 32 | (o.sequence + 1)) << 24;
    team.start(rank, o, {address, memory.size(), memory.data()});
  }
  void on_released(unsigned rank, const Operation& o, End end, Nanos now) override {
    EXPECT_EQ((++times_[{rank, o.communicator, o.sequence}]), 1u) << "released twice";
    auto& memory = memory_[{rank, o.communicator, o.sequence}];
    ended++;
    if (end == End::kWhole) {
      whole++;
      for (std::uint64_t i = 0; i < memory.size(); i++)
        wrong += memory[i] != right(o, static_cast<unsigned>(i / o.block_bytes), i % o.block_bytes);
    } else {
      failed[end]++;
    }
    std::fill(memory.begin(), memory.end(), 0xDD);
    hash = (hash ^ static_cast<std::uint64_t>(now) ^ rank << 20 ^ static_cast<unsigned>(end)) * 0x100000001B3;
    for (const Operation& next : operations_)
      if (next.communicator == o.communicator && next.sequence == o.sequence + options_.outstanding) begin(rank, next);
  }

  Star& star_;
  const TeamOptions options_;
  std::vector<Operation> operations_;
  std::map<std::tuple<unsigned, unsigned, std::uint32_t>, std::vector<std::uint8_t>> memory_;
  std::map<std::tuple<unsigned, unsigned, std::uint32_t>, unsigned> times_;

 public:
  Team team;
};

}  // namespace rocebox::allgather::test
