// SPDX-License-Identifier: BSD-3-Clause
// A configuration text: mistakes or a configuration; and the effective one must load to itself. Labs too.
#include <string>

#include "runtime/config/config.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/lab/lab_config.h"
#include "runtime/process/eal.h"
#include "runtime/telemetry/expect.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace rocebox;
using fuzz::require;

void check_fixpoint(const config::RunConfig& config, Registry& registry) {
  const std::string effective = config::effective_yaml(config);
  config::Mistakes mistakes("effective.yaml");
  const config::RunConfig again = config::load_text(effective, "effective.yaml", registry, mistakes, false);
  if (!mistakes.none()) std::fprintf(stderr, "%s\n%s\n", effective.c_str(), mistakes.text().c_str());
  require(mistakes.none(), "the effective configuration loads");
  const std::string twice = config::effective_yaml(again);
  if (twice != effective) std::fprintf(stderr, "--- first\n%s--- second\n%s", effective.c_str(), twice.c_str());
  require(twice == effective, "and is its own effective configuration");
}

constexpr std::size_t kTablesMebibytes = 256;  // of the switches that are made

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  start_eal(kTablesMebibytes);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Registry registry;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  config::Mistakes mistakes("fuzz.yaml"), lab_mistakes("fuzz.yaml");
  const lab::LabConfig lab = lab::load_text(text, "fuzz.yaml", {}, lab_mistakes, false);
  for (const lab::WireConfig& wire : lab.wires)
    if (lab_mistakes.none()) require(lab.mtu(wire) >= 68, "what is joined is there");
  for (const lab::ApplianceConfig& appliance : lab.appliances)
    if (lab_mistakes.none() && appliance.file.empty()) check_fixpoint(appliance.config, *appliance.registry);
  const config::RunConfig config = config::load_text(text, "fuzz.yaml", registry, mistakes, false);
  require(mistakes.none() == mistakes.text().empty(), "mistakes have words");
  if (!mistakes.none()) return 0;
  check_fixpoint(config, registry);
  for (const config::DeviceConfig& device : config.devices) {
    for (const config::KernelConfig& kernel : device.kernels) {
      CounterSet stats;
      try {
        require(kernel.options->make(stats) != nullptr, "a checked kernel can be made");
      } catch (const ConfigError&) {
      }
    }
  }
  for (const config::ExpectationText& expectation : config.expectations) {
    try {
      std::string why;
      (void)Expectation(expectation.text).may_resolve(Json::object({{"devices", {{"a", 1}}}}), why);
    } catch (const ConfigError&) {
    }
  }
  return 0;
}
