// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/resources.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/component/fields.h"
#include "runtime/kernel/report.h"

namespace rocebox::switch_model {
namespace {

constexpr std::int64_t kPageBits = 1024 * 128, kTcamWords = 512, kTcamBits = 44;
// An exact entry's version and next-table bits; a cuckoo table is full at nine tenths of its places.
constexpr std::int64_t kExactOverheadBits = 12, kExactPlaces = 10, kExactFull = 9, kExactHashBits = 52;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::string_view gress_name(Gress gress) { return gress == Gress::kIngress ? "ingress" : "egress"; }

bool has_map_ram(ResourceKind kind) {
  return kind == ResourceKind::kRegister || kind == ResourceKind::kMeter || kind == ResourceKind::kCounters;
}

// Takes what it can of `left` in one stage; false when the stage has nothing for it.
bool take(Usage& left, const Resource& resource, const Profile& profile, Usage& stage) {
  std::int64_t pages = std::min(left.sram_pages, profile.sram_pages - stage.sram_pages);
  if (left.map_ram) pages = std::min(pages, profile.map_ram - stage.map_ram);
  const std::int64_t blocks = std::min(left.tcam_blocks, profile.tcam_blocks - stage.tcam_blocks);
  const bool alus = stage.stateful_alus + resource.stateful_alus <= profile.stateful_alus;
  const bool counts = stage.statistics_alus + left.statistics_alus <= profile.statistics_alus;
  const bool bits = stage.hash_bits + left.hash_bits <= profile.hash_bits;
  const bool needs_memory = left.sram_pages > 0 || left.tcam_blocks > 0;
  if (!alus || !counts || !bits || (needs_memory && pages + blocks <= 0)) return false;
  stage.sram_pages += pages;
  left.sram_pages -= pages;
  if (left.map_ram) stage.map_ram += pages, left.map_ram -= pages;
  stage.tcam_blocks += blocks;
  left.tcam_blocks -= blocks;
  stage.stateful_alus += resource.stateful_alus;
  stage.statistics_alus += left.statistics_alus;
  stage.hash_bits += left.hash_bits;
  return true;
}

}  // namespace

void Profile::fields(Fields& f) {
  f.integer("stages", stages, {1, 64}, "match-action stages of a pipe");
  f.integer("sram_pages", sram_pages, {1, 4096}, "SRAM pages of a stage, each 1024 words of 128 bits");
  f.integer("map_ram", map_ram, {0, 4096}, "map RAMs of a stage, one for each page of registers");
  f.integer("tcam_blocks", tcam_blocks, {0, 4096}, "TCAM blocks of a stage, each 512 words of 44 bits");
  f.integer("stateful_alus", stateful_alus, {0, 64}, "stateful ALUs of a stage; a meter takes one, too");
  f.integer("statistics_alus", statistics_alus, {0, 64}, "statistics ALUs of a stage, one for each counter array");
  f.integer("hash_bits", hash_bits, {0, 4096}, "bits of hash output of a stage");
}

Usage usage_of(const Resource& r) {
  Usage usage;
  const auto entries = static_cast<std::int64_t>(r.entries);
  if (r.entries == 0 && r.kind != ResourceKind::kHash) return usage;  // an empty table is not laid out
  usage.stateful_alus = r.stateful_alus;
  usage.statistics_alus = r.kind == ResourceKind::kCounters;
  switch (r.kind) {
    case ResourceKind::kHash:
      usage.hash_bits = r.value_bits;
      break;
    case ResourceKind::kLpmTable:
    case ResourceKind::kTernaryTable:
      usage.tcam_blocks = divide_up(r.key_bits, kTcamBits) * divide_up(entries, kTcamWords);
      usage.sram_pages = divide_up(entries * r.value_bits, kPageBits);
      break;
    case ResourceKind::kExactTable:
      usage.sram_pages =
          divide_up(entries * (r.key_bits + r.value_bits + kExactOverheadBits) * kExactPlaces, kPageBits * kExactFull);
      usage.hash_bits = kExactHashBits;
      break;
    default:
      usage.sram_pages = divide_up(entries * r.value_bits, kPageBits);
  }
  if (has_map_ram(r.kind)) usage.map_ram = usage.sram_pages;
  return usage;
}

namespace {

// Puts a resource into the stages from `from` on; false when they have no room.
bool place(Resource& resource, std::size_t from, const Profile& profile, std::vector<Usage>& used) {
  Usage left = usage_of(resource);
  const auto done = [&] { return left.sram_pages == 0 && left.tcam_blocks == 0; };
  std::size_t stage = from;
  while (stage < used.size() && !take(left, resource, profile, used[stage])) stage++;
  if (stage >= used.size()) return false;
  resource.first_stage = static_cast<unsigned>(stage);
  while (!done() && ++stage < used.size()) take(left, resource, profile, used[stage]);  // full ones are passed
  resource.last_stage = static_cast<unsigned>(std::min(stage, used.size() - 1));
  return done();
}

std::string no_room(const Resource& resource, const Profile& profile) {
  const Usage all = usage_of(resource);
  return fmt::format(
      "program {}, {}, stage {}, {} `{}`: needs {} SRAM pages, {} map RAMs, {} TCAM blocks, {} stateful ALUs, {} "
      "statistics ALUs and {} hash bits, which stages {} to {} do not have free",
      resource.program, gress_name(resource.at.gress), resource.at.stage, resource_kind_name(resource.kind),
      resource.name, all.sram_pages, all.map_ram, all.tcam_blocks, all.stateful_alus, all.statistics_alus,
      all.hash_bits, resource.at.stage, profile.stages - 1);
}

// One control of a program, whose resources stand in the order of its stages, from stage `base` of the chip on. Gives
// the stage behind them.
unsigned lay_out_control(std::span<Resource* const> resources, unsigned base, const Profile& profile,
                         std::vector<Usage>& used, std::vector<std::string>& problems) {
  unsigned behind = base, number = 0, first = base;
  for (Resource* resource : resources) {
    if (resource == resources.front() || resource->at.stage != number) {
      number = resource->at.stage;
      first = std::max(base + number, behind);
    }
    resource->at.stage = resource->first_stage = resource->last_stage = first;
    if (resource->entries == 0 && resource->kind != ResourceKind::kHash) continue;  // an empty table is nowhere
    if (!place(*resource, first, profile, used)) problems.push_back(no_room(*resource, profile));
    behind = std::max(behind, resource->last_stage + 1);
  }
  return behind;
}

}  // namespace

std::vector<std::string> lay_out(Layout& layout, const Profile& profile, std::vector<Usage>& used) {
  std::vector<std::string> problems;
  used.assign(static_cast<std::size_t>(profile.stages), {});
  unsigned bases[] = {0, 0};  // of the next program, by control
  auto& all = layout.resources();
  for (auto program = all.begin(); program != all.end();) {
    const auto end =
        std::find_if(program, all.end(), [&](const Resource& other) { return other.program != program->program; });
    // Egress first: its programs are the longer ones.
    for (const Gress gress : {Gress::kEgress, Gress::kIngress}) {
      std::vector<Resource*> own;
      for (auto resource = program; resource != end; ++resource)
        if (resource->at.gress == gress) own.push_back(&*resource);
      std::ranges::stable_sort(own, {}, [](const Resource* resource) { return resource->at.stage; });
      unsigned& base = bases[static_cast<std::size_t>(gress)];
      base = lay_out_control(own, base, profile, used, problems);
    }
    program = end;
  }
  return problems;
}

namespace {

// One row for each part of each program.
void report_programs(Report& report, const Layout& layout) {
  struct Row {
    std::string name, part;
    std::uint64_t flow_bits = 0, bits = 0;
  };
  std::vector<Row> rows;
  for (const Resource& resource : layout.resources()) {
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const Row& r) { return r.name == resource.program && r.part == resource.part; });
    if (row == rows.end()) row = rows.insert(rows.end(), {resource.program, resource.part});
    row->bits += resource.bits();
    if (resource.kind == ResourceKind::kRegister) row->flow_bits += resource.per_flow * resource.value_bits;
  }
  const auto bytes = [](std::uint64_t bits) { return static_cast<std::int64_t>((bits + 7) / 8); };
  report.table("programs", rows.size(), [&](Report& row, std::size_t i) {
    row.text("program", rows[i].name);
    if (!rows[i].part.empty()) row.text("part", rows[i].part);
    row.count("bytes_per_flow", bytes(rows[i].flow_bits));
    row.count("bytes_per_pipe", bytes(rows[i].bits));
    row.count("bytes", bytes(rows[i].bits) * layout.pipes());
  });
}

void report_usage(Report& row, const Usage& usage) {
  row.count("sram_pages", usage.sram_pages);
  row.count("map_ram", usage.map_ram);
  row.count("tcam_blocks", usage.tcam_blocks);
  row.count("stateful_alus", usage.stateful_alus);
  row.count("statistics_alus", usage.statistics_alus);
  row.count("hash_bits", usage.hash_bits);
}

}  // namespace

void report_resources(Report& report, const Layout& layout, const Profile& profile, const std::vector<Usage>& used) {
  const auto& all = layout.resources();
  report.table("resources", all.size(), [&](Report& row, std::size_t i) {
    const Resource& r = all[i];
    row.text("program", r.program);
    row.text("control", gress_name(r.at.gress));
    row.text("kind", resource_kind_name(r.kind));
    row.text("name", r.name);
    row.text("stages", r.first_stage == r.last_stage ? fmt::format("{}", r.first_stage)
                                                     : fmt::format("{}-{}", r.first_stage, r.last_stage));
    row.count("entries", static_cast<std::int64_t>(r.entries));
    row.count("bits", r.key_bits + r.value_bits);
    row.count("bytes_per_flow", static_cast<std::int64_t>((r.per_flow * r.value_bits + 7) / 8));
    report_usage(row, usage_of(r));
  });
  report_programs(report, layout);
  report.table("stages", used.size(), [&](Report& row, std::size_t i) {
    row.count("stage_number", static_cast<std::int64_t>(i));
    report_usage(row, used[i]);
  });
  Usage sum;
  for (const Usage& stage : used) {
    sum.sram_pages += stage.sram_pages;
    sum.map_ram += stage.map_ram;
    sum.stateful_alus += stage.stateful_alus;
    sum.statistics_alus += stage.statistics_alus;
    sum.tcam_blocks += stage.tcam_blocks;
  }
  report.object("share_of_a_pipe", [&](Report& share) {
    const auto of = [&](std::string_view name, std::int64_t part, std::int64_t whole) {
      share.setting(name, whole ? static_cast<double>(part) / static_cast<double>(whole * profile.stages) : 0.0);
    };
    of("sram", sum.sram_pages, profile.sram_pages);
    of("map_ram", sum.map_ram, profile.map_ram);
    of("tcam", sum.tcam_blocks, profile.tcam_blocks);
    of("stateful_alus", sum.stateful_alus, profile.stateful_alus);
    of("statistics_alus", sum.statistics_alus, profile.statistics_alus);
  });
}

}  // namespace rocebox::switch_model
