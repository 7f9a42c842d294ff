// SPDX-License-Identifier: BSD-3-Clause
// What is wrong with a memif port's control socket.
#pragma once
#include <string>

#include "runtime/config/live_fields.h"

namespace rocebox {

/// Removes the socket of a server that was killed, which would be in the way of the next. Takes a second at most.
void remove_stale_memif(const config::LivePortOptions::Memif& memif);

/// Why DPDK cannot use this socket, as the file system and who listens there tell, and the mend. Takes a second at
/// most.
std::string explain_memif(const config::LivePortOptions::Memif& memif);

}  // namespace rocebox
