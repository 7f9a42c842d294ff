// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/layout.h"

#include <fmt/format.h>

#include "runtime/kernel/kernel.h"

namespace rocebox::switch_model {

std::string_view resource_kind_name(ResourceKind kind) {
  constexpr std::string_view kNames[] = {"register", "exact table", "lpm table", "ternary table",
                                         "hash",     "meter",       "counters"};
  return kNames[static_cast<std::size_t>(kind)];
}

Resource& Layout::add(Resource resource) {
  if (resource.entries > static_cast<std::uint64_t>(kEntriesMax))
    throw ConfigError(fmt::format("program {}: `{}` has {} entries, at most {} are possible", resource.program,
                                  resource.name, resource.entries, kEntriesMax));
  if (resources_.size() == kResourcesMax)
    throw ConfigError(fmt::format("program {}: `{}` is one resource too many, a switch has at most {}",
                                  resource.program, resource.name, kResourcesMax));
  resource.id = static_cast<unsigned>(resources_.size());
  resource.first_stage = resource.last_stage = resource.at.stage;
  resource.part = part_;
  return resources_.emplace_back(std::move(resource));
}

void Layout::declare(ResourceHandle& handle, Resource resource) {
  resource.program = program_;
  handle.resource_ = &add(std::move(resource));
}

unsigned Layout::metadata(unsigned words) {
  if (metadata_words_ + words > kMetadataWords)
    throw ConfigError(fmt::format("program {} needs {} words of metadata, {} of {} are taken", program_, words,
                                  metadata_words_, kMetadataWords));
  const unsigned first = metadata_words_;
  metadata_words_ += words;
  return first;
}

}  // namespace rocebox::switch_model
