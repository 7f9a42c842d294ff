// SPDX-License-Identifier: BSD-3-Clause
// Pipelines as arrows: `host <-> gateway <-> wire`, `rx -> classify.1 -> tx`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/document.h"
#include "runtime/engine/pipeline.h"

namespace rocebox::config {

/// A kernel that a path may name.
struct PathKernel {
  std::string name;
  Shape shape;
  Port inputs, outputs;
};

/// The wiring of one device.
struct Wiring {
  std::vector<std::string> ports;          ///< device ports, in the order in which the paths name them
  std::vector<Edge> inputs;                ///< by device port: where packets that come in go; kNowhere: output only
  std::vector<std::vector<Edge>> outputs;  ///< by kernel, by output port
};

/// Reads the chains of a path and wires them. A name is a kernel if `kernels` has it; the first and last name of a
/// chain may be a device port instead. At the ends of a chain `NAME.N` chooses port N of a kernel. `<->` runs both
/// ways and needs two-sided kernels between ports; `->` runs one way. Mistakes go to `mistakes` at `place`:
/// unknown names, ports wired twice, kernels in no chain, and rings.
Wiring wire(const std::vector<std::string>& chains, const std::vector<PathKernel>& kernels, Place place,
            Mistakes& mistakes);

/// The names in the chains, in order, without repetition; for finding kernels that are given by type only.
std::vector<std::string> path_names(const std::vector<std::string>& chains);

}  // namespace rocebox::config
