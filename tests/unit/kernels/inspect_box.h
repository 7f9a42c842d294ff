// SPDX-License-Identifier: BSD-3-Clause
// The inspect kernel in a box, with its report as JSON: what its scenario tests stand on.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "kernels/inspect/inspector.h"
#include "tests/unit/harness.h"

namespace rocebox::inspect::test_box {

using Json = nlohmann::ordered_json;
using roce::PacketSpec;
inline constexpr Nanos kUs = kMicrosecond;

// The report as JSON.
class JsonReport final : public Report {
 public:
  explicit JsonReport(Json& to) : to_(to) {}
  void count(std::string_view name, std::int64_t value) override { put(name, value); }
  void real(std::string_view name, double value) override { put(name, value); }
  void flag(std::string_view name, bool value) override { put(name, value); }
  void text(std::string_view name, std::string_view value) override { put(name, value); }
  void duration(std::string_view name, std::int64_t nanos) override { put(name, nanos); }
  void object(std::string_view name, const std::function<void(Report&)>& fill) override {
    JsonReport inner(to_[std::string(name)] = Json::object());
    fill(inner);
  }
  void table(std::string_view name, std::size_t rows, const std::function<void(Report&, std::size_t)>& fill) override {
    Json& all = to_[std::string(name)] = Json::array();
    for (std::size_t row = 0; row < rows; row++) {
      JsonReport inner(all.emplace_back(Json::object()));
      fill(inner, row);
    }
  }

 private:
  template <class T>
  void put(std::string_view name, const T& value) {
    EXPECT_FALSE(to_.contains(std::string(name))) << name << " twice";
    to_[std::string(name)] = value;
  }
  Json& to_;
};

inline const auto kA = roce::ipv4(10, 0, 0, 1), kB = roce::ipv4(10, 0, 0, 2);

struct Box : test::KernelBox {
  explicit Box(Config config = {}) : KernelBox([&](Stats& s) { return std::make_unique<Inspector>(config, s); }) {}

  PacketSpec data(std::uint8_t opcode, std::uint32_t psn, std::size_t payload = 0, int id = -1) {
    PacketSpec spec;
    spec.opcode = opcode, spec.psn = psn & roce::kPsnMask, spec.destination_qp = 0x12;
    spec.underlay.addresses = {kA, kB};
    spec.underlay.ip_identification = static_cast<std::uint16_t>(id < 0 ? 0 : id);
    spec.payload = {bytes, payload};
    return spec;
  }
  PacketSpec response(std::uint8_t opcode, std::uint32_t psn, std::uint8_t syndrome = 0, std::size_t payload = 0) {
    PacketSpec spec = data(opcode, psn, payload);
    spec.underlay.addresses = {kB, kA};
    spec.destination_qp = 0x11, spec.syndrome = syndrome;
    return spec;
  }
  PacketSpec ack(std::uint32_t psn, std::uint8_t syndrome = 0) {
    return response(IBV_OPCODE_RC_ACKNOWLEDGE, psn, syndrome);
  }
  PacketSpec read(std::uint32_t psn, std::uint32_t length) {
    PacketSpec spec = data(IBV_OPCODE_RC_RDMA_READ_REQUEST, psn);
    spec.dma_length = length;
    return spec;
  }
  void at(Nanos now, const PacketSpec& spec) { send(now, 0, spec); }
  /// SEND Only of 100 bytes, 1 us after the last.
  void only(std::uint32_t psn, int id = -1) { at(clock += kUs, data(IBV_OPCODE_RC_SEND_ONLY, psn, 100, id)); }
  void check(const PacketSpec& spec) { at(clock += kUs, spec); }

  Json report() {
    Json json = Json::object();
    JsonReport out_report(json);
    kernel->report(out_report);
    return json;
  }
  Json flow(std::size_t row = 0) { return report()["flows"].at(row); }
  Json requests() { return flow()["requests"]; }

  std::uint8_t bytes[4096] = {};
  Nanos clock = 0;
};

}  // namespace rocebox::inspect::test_box
