// SPDX-License-Identifier: BSD-3-Clause
// What programs take of a chip, and whether that fits.
#pragma once
#include <string>
#include <vector>

#include "switch_model/layout.h"

namespace rocebox {
class Fields;
class Report;
}  // namespace rocebox

namespace rocebox::switch_model {

/// A chip's limits, for one stage of one pipe; ingress and egress share them. The defaults are those published of
/// Tofino 2.
struct Profile {
  std::int64_t stages = 20;
  std::int64_t sram_pages = 80;      ///< of 1024 words of 128 bits
  std::int64_t map_ram = 48;         ///< one for each page of a register array, meter or counter
  std::int64_t tcam_blocks = 24;     ///< of 512 words of 44 bits
  std::int64_t stateful_alus = 4;    ///< of register arrays and meters, which share them
  std::int64_t statistics_alus = 4;  ///< of counter arrays
  std::int64_t hash_bits = 416;

  void fields(Fields& fields);
};

/// What one stage, or one resource, takes.
struct Usage {
  std::int64_t sram_pages = 0, map_ram = 0, tcam_blocks = 0, stateful_alus = 0, statistics_alus = 0, hash_bits = 0;
};
/// Of the whole resource, in as many stages as it takes (its ALU stands in each of them).
Usage usage_of(const Resource& resource);

/// Lays the resources of all programs into the stages of one chip, once: a program behind those before it, its stages
/// in their order, each from the first stage on that has room; sets where they are. What does not fit is told by
/// program, control, stage and resource. `used`: by stage.
std::vector<std::string> lay_out(Layout& layout, const Profile& profile, std::vector<Usage>& used);

/// Tables of resources, programs (bytes per flow) and stages.
void report_resources(Report& report, const Layout& layout, const Profile& profile, const std::vector<Usage>& used);

}  // namespace rocebox::switch_model
