// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/access.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocebox::switch_model {

void Violations::add(const std::string& text) {
  counter_.add();
  for (Violation& known : list_)
    if (known.text == text) {
      known.count++;
      return;
    }
  if (list_.size() < kViolationsKept) list_.push_back({text, 1});
}

void Strict::begin(Gress gress, std::span<const PacketState> packets) {
  gress_ = gress;
  first_ = packets.data();
  std::fill_n(tracks_.begin(), packets.size(), Track{});
}

void Strict::touch(const PacketState& p, const Resource& resource) {
  Track& track = tracks_[static_cast<std::size_t>(&p - first_)];
  if (resource.at.gress != gress_)
    report(resource, gress_ == Gress::kIngress ? "touched by the ingress control" : "touched by the egress control");
  if (track.touched[resource.id]) {
    report(resource, "a second access by one packet");
  } else if (track.latest && resource.at.stage < track.latest->at.stage) {
    report(resource, "back to an earlier stage", track.latest);
  }
  if (!resource.unused.empty()) report(resource, "touched, and its program calls it unused");
  track.touched[resource.id] = true;
  violations_.judged(resource);
  if (!track.latest || resource.at.stage >= track.latest->at.stage) track.latest = &resource;
}

void Strict::report(const Resource& resource, std::string_view what, const Resource* other) {
  std::string text = fmt::format("program {}, {}, stage {}, {} `{}`: {}", resource.program,
                                 resource.at.gress == Gress::kIngress ? "ingress" : "egress", resource.at.stage,
                                 resource_kind_name(resource.kind), resource.name, what);
  if (other && other->program != resource.program)
    text += fmt::format(" than `{}` of program {}, stage {}", other->name, other->program, other->at.stage);
  else if (other)
    text += fmt::format(" than `{}` of stage {}", other->name, other->at.stage);
  violations_.add(text);
}

}  // namespace rocebox::switch_model
