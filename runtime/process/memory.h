// SPDX-License-Identifier: BSD-3-Clause
// How much memory this process may still take.
#pragma once
#include <cstdint>
#include <string>

namespace rocebox {

/// The lesser of what the machine has available and what the limits of the process's control groups (version 1 or 2)
/// leave, page cache counted as free; UINT64_MAX when nothing is known. `root` is put before
/// /proc and /sys, for tests.
std::uint64_t available_memory_bytes(const std::string& root = "");

/// What the limit on this process' address space (`ulimit -v`) leaves; UINT64_MAX: there is none. Address space is not
/// memory: libraries, threads and rings take much of it that is never touched.
std::uint64_t address_space_bytes(const std::string& root = "");

}  // namespace rocebox
