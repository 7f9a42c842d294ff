// SPDX-License-Identifier: BSD-3-Clause
// A host with a queue pair on side 0, and a device program's endpoint on side 1, connected.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic_model/dpa/endpoint.h"
#include "nic_model/dpa/engine.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {

namespace dpa = nic_model::dpa;

/// The path of a program that was built with the tests.
inline std::string dpa_program(const std::string& name) {
  return std::string(ROCEBOX_DPA_PROGRAMS) + "/" + name + ".so";
}
/// The same of those that tests alone have.
inline std::string dpa_test_program(const std::string& name) {
  return std::string(ROCEBOX_DPA_TEST_PROGRAMS) + "/" + name + ".so";
}

class DpaBox : public NicBox {
 public:
  explicit DpaBox(const std::string& nic = "rate: 100Gbps", const std::string& link = "delay: 1us")
      : NicBox(nic, link) {}

  dpa::Process& load(const std::string& program, unsigned side = 1) { return load_file(dpa_program(program), side); }
  dpa::Process& load_test(const std::string& program) { return load_file(dpa_test_program(program), 1); }
  dpa::Process& load_file(const std::string& path, unsigned side) {
    dpa::Process* made = nullptr;
    on(side, [&](nic_model::Host& host) { made = &host.dpa().create_process(path); });
    return *made;
  }
  /// What a function of the program returns when the host calls it; nothing: it waits.
  std::optional<std::uint64_t> call(dpa::Process& process, const std::string& function,
                                    std::vector<std::uint64_t> arguments = {}) {
    std::optional<std::uint64_t> result;
    on(1, [&](nic_model::Host&) {
      EXPECT_EQ(0, process.call(function, arguments, [&](std::uint64_t n) { result = n; })) << function;
    });
    return result;
  }
  /// An endpoint on side 1 whose handler is `handler`, with a window to the host's memory; a queue pair on side 0.
  void connect_to(dpa::Process& process, dpa::EndpointOptions with, std::size_t host_bytes = 4096);
  /// An endpoint of `process`, on the NIC of `side`; not connected.
  dpa::Endpoint& add(dpa::Process& process, unsigned side, const dpa::EndpointOptions& with);
  /// Brings a queue pair to RTS, towards one of the other side.
  void bring_up(unsigned side, nic_model::Qp& qp, std::uint32_t peer);

  std::vector<std::unique_ptr<dpa::Endpoint>> endpoints;
  std::unique_ptr<dpa::GuardedMemory> window;
};

}  // namespace rocebox::test
