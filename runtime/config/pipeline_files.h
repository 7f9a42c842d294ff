// SPDX-License-Identifier: BSD-3-Clause
// Pipelines: files with what a device has, for many configurations to name.
#pragma once
#include <string>
#include <vector>

#include "runtime/component/registry.h"
#include "runtime/config/document.h"

namespace rocebox::config {

/// Puts what the pipeline has in place of each `pipeline: NAME`, or `pipeline: FILE.yaml` beside the configuration
/// `file`; options that the device gives itself hold. What is wrong inside a pipeline is told with its own file and
/// place; what is wrong with its use, and what comes from it, at the place that names it.
/// `follow` false: no file is opened, and a device that names a pipeline is a mistake. False when one could not be put
/// in its place.
bool resolve_pipelines(Node& root, const std::string& file, const Registry& registry, Mistakes& mistakes, bool follow);

/// Puts `above` over `below`: mappings are joined; anything else that is written above holds in place of what is below.
void lay_over(Node& below, const Node& above);

/// The folders that names of pipelines are looked for in, one after the other.
std::vector<std::string> pipeline_folders();

}  // namespace rocebox::config
