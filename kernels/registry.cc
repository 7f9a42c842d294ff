// SPDX-License-Identifier: BSD-3-Clause
// Every in-tree kernel and program, one row each. Deleting a folder and its row removes it entirely.
#include "runtime/kernel/registry.h"

#include <array>

#include "kernels/inspect/inspect.h"
#include "kernels/link/link.h"
#include "kernels/lowar/lowar.h"
#include "switch_model/forward/forward.h"
#include "switch_model/switch.h"

namespace rocebox {

std::span<const KernelType> in_tree_kernels() {
  static const std::array kernels = {inspect_kernel_type(), link_kernel_type(), lowar_kernel_type(),
                                     switch_kernel_type()};
  return kernels;
}

// The programs of a switch.
std::span<const switch_model::ProgramType> switch_model::in_tree_programs() {
  static const std::array programs = {forward_program_type()};
  return programs;
}

}  // namespace rocebox
