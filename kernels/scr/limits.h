// SPDX-License-Identifier: BSD-3-Clause
// Every bound of Software-Controlled RDMA, each with its reason.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/scr/include/rocebox_hints.h"
#include "kernels/scr/include/rocebox_scr.h"

namespace rocebox::scr {

/// Flows that a program knows, at most: SCR's experiments go to 1024, and tables of 16 times that are cheap.
inline constexpr std::int64_t kFlowsMax = SCR_FLOWS_MAX;

/// Threads of a pool: a DPA has 256.
inline constexpr std::int64_t kThreadsMax = 256;

/// Events of one flow and kind that wait at once. What is taken together needs one, and one more behind the ceiling;
/// round-trip times of different paths are never taken together, and a flow has as many probes under way.
inline constexpr std::array<std::uint8_t, SCR_KINDS> kQueueDepth = {4, 2, 2, 4, 2, 8, 4, 8};

/// Probes of one flow that are waited for at once, each of another path: as many as a NIC has under way.
inline constexpr std::uint32_t kProbesAwaited = 8;

/// Actions that one call of a program may ask for: a new flow changes the rate of each, and a round of path selection
/// probes all paths of each and moves it.
constexpr std::uint32_t actions_max(std::uint32_t flows) { return (kProbesAwaited + 2) * flows + 64; }

/// Rates, paths and messages that wait until they take effect; more take effect at once, which is counted: two of each
/// flow in each of two calls.
constexpr std::size_t actions_waiting(std::uint32_t flows) { return 4 * std::size_t{flows} + 128; }

/// The same of probes: a round of all.
constexpr std::size_t probes_waiting(std::uint32_t flows) { return kProbesAwaited * std::size_t{flows} + 64; }

/// Events that are under way to threads at once: with the paper's 7 us packets of 84 bytes at 400 Gbps are half as
/// many.
inline constexpr std::size_t kEventsUnderWay = 8192;

/// Rows of hints in a configuration.
inline constexpr std::size_t kHintsMax = 1024;

/// Greatest weight that a hint can give.
inline constexpr std::uint64_t kHintWeightMax = 65535;

/// Rows of a file of hints: as many as a configuration may have. All are read at once where one is new: 32 KiB.
inline constexpr std::size_t kHintRowsMax = ROCEBOX_HINTS_ROWS_MAX;
/// How often a file of hints that is missing or unusable is looked for again.
inline constexpr std::int64_t kHintsRetry = 100'000'000;

/// A rate below this is no rate: packets of the longest MTU would be more than 30 ms apart.
inline constexpr std::uint64_t kRateFloor = 1'000'000;

}  // namespace rocebox::scr
