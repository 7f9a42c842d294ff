// SPDX-License-Identifier: BSD-3-Clause
// Devices of lambdas in a fabric.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "runtime/engine/fabric.h"
#include "runtime/engine/pipeline_device.h"
#include "tests/unit/engine/script_kernel.h"

namespace rocebox::test {

class FabricBox {
 public:
  FabricBox()
      : pool({.small = 512, .large = 16, .giant = 2}),
        fabric([this](FabricPort from, std::span<Packet> packets, Nanos now) {
          for (Packet packet : packets) {
            log.push_back("out " + std::to_string(from.device) + "." + std::to_string(from.port) + " " +
                          std::to_string(packet.data()[0]) + " @" + std::to_string(now));
            rte_pktmbuf_free(packet.mbuf());
          }
        }) {}

  /// A two-port bump around one two-sided kernel; its calls are logged. `ports` beyond two lead in only.
  unsigned add(const std::string& name, ScriptKernel::Process process = {}, ScriptKernel::OnTimer timer = {}) {
    std::vector<KernelPlan> plans;
    auto logged = [this, name, process](Context& c, Port in, Batch& b) {
      for (unsigned i = 0; i < b.size(); i++)
        log.push_back(name + " in" + std::to_string(in) + " " + std::to_string(b[i].data()[0]) + " @" +
                      std::to_string(c.now()));
      if (process) process(c, in, b);
    };
    auto logged_timer = [this, name, timer](Context& c, std::uint64_t tag) {
      log.push_back(name + " timer" + std::to_string(tag) + " @" + std::to_string(c.now()));
      if (timer) timer(c, tag);
    };
    plans.push_back({"k", "script", Shape::kTwoSided, {out(0), out(1)}, [logged, logged_timer](Stats&) {
                       return std::make_unique<ScriptKernel>(logged, logged_timer);
                     }});
    devices.push_back(std::make_unique<PipelineDevice>(name, std::vector<std::string>{"a", "b"},
                                                       std::vector<Edge>{{0, 0}, {0, 1}}, std::move(plans), pool, 1));
    return fabric.add(*devices.back());
  }
  void inject(unsigned device, Port port, unsigned number) {
    PacketPtr packet = pool.allocate(1);
    packet->data()[0] = static_cast<std::uint8_t>(number);
    fabric.inject({device, port}, packet.release());
  }
  std::vector<std::string> take() { return std::exchange(log, {}); }

  Pool pool;
  std::vector<std::string> log;
  std::deque<std::unique_ptr<PipelineDevice>> devices;
  Fabric fabric;  // after devices: it refers to them
};

}  // namespace rocebox::test
