// SPDX-License-Identifier: BSD-3-Clause
// The kind of device `switch`: ports, programs, traffic manager.
#pragma once
#include "runtime/component/component.h"

namespace rocebox {

Component switch_component();

}  // namespace rocebox
