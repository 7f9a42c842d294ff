// SPDX-License-Identifier: BSD-3-Clause
// Counting allocations, to show that the datapath makes none.
#pragma once
#include <cstdint>

namespace rocebox::test {

/// False where a sanitizer brings its own operator new, which is left alone.
bool allocations_are_counted();
/// Begins or ends counting; returns the count so far.
std::uint64_t count_allocations(bool on);
void reset_allocations();

}  // namespace rocebox::test
