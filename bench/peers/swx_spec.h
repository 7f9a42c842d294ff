// SPDX-License-Identifier: BSD-3-Clause
// Builds a pipeline from a specification for SWX's interpreter. DPDK 22.11 reads such files only to generate C from
// them, which cannot be compiled without two of its headers that are not installed; by the calls that it has for each
// part of a pipeline nothing else is needed.
#pragma once
#include <string>

struct rte_swx_pipeline;

namespace rocebox::bench {

/// Gives `pipeline`, which has its ports, the structs, headers, actions, tables, selectors and instructions of the file
/// `path`, and builds it. Only what swx_forward.spec uses of the language is understood. Throws std::runtime_error with
/// file and line.
void build_from_spec(rte_swx_pipeline* pipeline, const std::string& path);

}  // namespace rocebox::bench
