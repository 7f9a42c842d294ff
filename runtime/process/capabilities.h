// SPDX-License-Identifier: BSD-3-Clause
// What the kernel lets this process do.
#pragma once
#include <initializer_list>
#include <string>

namespace rocebox {

/// A capability of capabilities(7), by its number there.
enum class Capability : unsigned { kNetAdmin = 12, kNetRaw = 13, kSysAdmin = 21 };

/// The names of those that this process does not have, as in "CAP_NET_RAW and CAP_NET_ADMIN"; empty: it has all.
std::string missing_capabilities(std::initializer_list<Capability> needed);

}  // namespace rocebox
