// SPDX-License-Identifier: BSD-3-Clause
#include "bench/micro/bump.h"

#include <fmt/format.h>

#include <vector>

#include "bench/micro/packets.h"
#include "runtime/component/registry.h"
#include "runtime/config/config.h"
#include "runtime/drives/testbed.h"

namespace rocebox::bench {

std::unique_ptr<Device> device_of(std::string_view device) {
  static Registry registry;
  const std::string text = fmt::format("devices: {{d: {}}}\n", device);
  config::Mistakes mistakes("benchmark.yaml");
  static std::vector<std::unique_ptr<config::RunConfig>> kept;  // kernels refer to what was written for them
  kept.push_back(
      std::make_unique<config::RunConfig>(config::load_text(text, "benchmark.yaml", registry, mistakes, false)));
  return mistakes.none() ? rocebox::make_device(kept.back()->devices[0], pool(), 1) : nullptr;
}

std::unique_ptr<Device> make_bump(std::string_view path, std::string_view kernels) {
  return device_of(fmt::format("{{path: {}, kernels: {}}}", path, kernels));
}

}  // namespace rocebox::bench
