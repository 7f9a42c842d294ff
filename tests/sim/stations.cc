// SPDX-License-Identifier: BSD-3-Clause
// A plugin with the device `station` and the workload `shout`.
#include "tests/unit/virtual/station.h"

extern "C" const rocebox::Component* rocebox_components() {
  using namespace rocebox;
  static const Component components[] = {device_kind<sim_test::StationOptions>("station", "sends messages"),
                                         workload_component<sim_test::ShoutOptions>("shout", "each host to the next"),
                                         {}};
  return components;
}
