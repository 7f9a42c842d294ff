// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/congestion_control.h"

#include <fmt/format.h>

namespace rocebox::nic_model {

std::string nic_with(const Component& self) {
  return fmt::format("{{rate: 100Gbps, congestion_control: {}}}", self.name);
}

}  // namespace rocebox::nic_model
