// SPDX-License-Identifier: BSD-3-Clause
// A plugin built against another ABI number, which the loader must refuse.
#include "runtime/kernel/kernel.h"

extern "C" const rocebox::KernelType* rocebox_kernel_types() {
  static const rocebox::KernelType types[] = {
      {rocebox::kKernelAbi + 1, "future", "", rocebox::Shape::kTwoSided, 2, 2, nullptr, nullptr, nullptr}, {}};
  return types;
}
