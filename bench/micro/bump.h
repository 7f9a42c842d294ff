// SPDX-License-Identifier: BSD-3-Clause
// Devices for the micro benchmarks, from the text of a configuration.
#pragma once
#include <memory>
#include <string_view>

#include "runtime/engine/pipeline_device.h"

namespace rocebox::bench {

/// A kernel or program to measure: a bump with this `path:` and these `kernels:`, or a switch with these options.
struct Case {
  const char* label;
  const char* path;  ///< null: a switch
  const char* options;
  Port in = 0;  ///< by which data come
};

/// A device from what stands behind its name in a configuration. Null when that has mistakes.
std::unique_ptr<Device> device_of(std::string_view device);

/// A bump with this `path:` and these `kernels:`, as in a configuration. Null when they have mistakes.
std::unique_ptr<Device> make_bump(std::string_view path, std::string_view kernels);

}  // namespace rocebox::bench
