// SPDX-License-Identifier: BSD-3-Clause
// The contract of counters: each says by its kind what its number means, and who reads it goes by that.
#pragma once
#include <functional>
#include <memory>

#include "runtime/kernel/kernel_options.h"

namespace rocebox::test {

/// Runs two instances of a kernel, as two shards do, over traffic that differs: counts and high-water marks never sink,
/// their names tell them apart, and the report and the metrics of both sum them up as their kind says.
void check_counter_kinds(const KernelOptions& type, const std::function<std::unique_ptr<Kernel>(Stats&)>& make);

/// High-water marks that were above 0 in both instances so far, so that their sum would have been seen.
unsigned peaks_compared();

}  // namespace rocebox::test
