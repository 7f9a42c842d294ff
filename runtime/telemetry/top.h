// SPDX-License-Identifier: BSD-3-Clause
// What `rocebox top` shows: two samples of a run's telemetry make a block of rates, and that makes text.
#pragma once
#include <string>

#include "runtime/telemetry/telemetry_client.h"

namespace rocebox {

/// All that a run tells now: {"run", "ports", "devices", "kernels", "links"}, the last four by name. Throws
/// TelemetryError.
Json take_sample(TelemetryClient& client);

/// What happened between two samples, as lists of rows: "shards" with the share of time that they were busy, "ports",
/// "devices", "kernels" and "links" with rates and latencies, "drops" by place and reason with their count since the
/// start of the run, and "counters", those of kernels that move most. Rates are per second, of the run's own clock; 0
/// when no time has passed.
Json top_block(const Json& before, const Json& after);

/// The block as lines for a person.
std::string top_text(const Json& block);

}  // namespace rocebox
