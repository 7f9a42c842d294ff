// SPDX-License-Identifier: BSD-3-Clause
// Network interfaces of this machine, as the kernel knows them now.
#pragma once
#include "runtime/drives/live/link_log.h"

namespace rocebox {

/// The state of the interface with the index `index` in the network namespace of `socket`, whatever its name is by now.
LinkState interface_state(int socket, int index);
/// The same in the namespace of this process.
LinkState interface_state(int index);

/// The state of the TAP interface behind this process' descriptor, in whatever namespace it is by now.
LinkState tap_state(int descriptor);
/// A descriptor of this process that is a queue of the TAP interface `name`; -1: there is none.
int find_tap(const std::string& name);

}  // namespace rocebox
