// SPDX-License-Identifier: BSD-3-Clause
// Every in-tree kernel, one row each. Deleting a kernel's folder and its row removes it entirely.
#include "runtime/kernel/registry.h"

#include <array>

#include "kernels/inspect/inspect.h"
#include "kernels/link/link.h"
#include "kernels/lowar/lowar.h"

namespace rocebox {

std::span<const KernelType> in_tree_kernels() {
  static const std::array kernels = {inspect_kernel_type(), link_kernel_type(), lowar_kernel_type()};
  return kernels;
}

}  // namespace rocebox
