// SPDX-License-Identifier: BSD-3-Clause
// A plugin built against another ABI number, which the loader must refuse.
#include "runtime/component/component.h"

extern "C" const rocebox::Component* rocebox_components() {
  static const rocebox::Component components[] = {
      {rocebox::kComponentAbi + 1, "kernel", "future", "", nullptr, nullptr, nullptr, nullptr, false}, {}};
  return components;
}
