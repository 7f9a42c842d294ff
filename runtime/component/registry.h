// SPDX-License-Identifier: BSD-3-Clause
// The kernels that this process can load: the in-tree array and what plugins brought.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernel/kernel.h"

namespace rocebox {

/// The in-tree kernels, an explicit array in kernels/registry.cc. They come through the same door as a plugin's.
std::span<const KernelType> in_tree_kernels();

class Registry {
 public:
  /// Starts with the in-tree kernels.
  Registry();

  /// Loads a plugin .so and adds its kernels. It stays loaded until the process ends. Throws ConfigError that
  /// names the file and the reason: not found, no rocebox_kernel_types, another ABI number, a name in use.
  void load_plugin(const std::string& path);
  /// The files that were loaded.
  const std::vector<std::string>& plugins() const { return plugins_; }

  /// Null when there is none of that name.
  const KernelType* find(std::string_view name) const;
  const std::vector<const KernelType*>& types() const { return types_; }

 private:
  void add(const KernelType& type, const std::string& origin);
  std::vector<const KernelType*> types_;
  std::vector<std::string> plugins_;
};

}  // namespace rocebox
