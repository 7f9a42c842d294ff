// SPDX-License-Identifier: BSD-3-Clause
// What strict mode has found, and what it has not come to.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/config/document.h"
#include "switch_model/datapath.h"

namespace rocebox::switch_model {
namespace {

std::string name_of(const Resource& resource) { return resource.program + "." + resource.name; }
bool is_laid_out(const Resource& resource) { return resource.entries != 0 || resource.kind == ResourceKind::kHash; }

}  // namespace

void Datapath::check_accepted() const {
  std::vector<std::string> known;
  for (const Resource& resource : layout_.resources()) known.push_back(name_of(resource));
  for (const std::string& name : accepted_)
    if (std::ranges::find(known, name) == known.end())
      throw ConfigError(fmt::format("switch: `accept_unjudged` names nothing that a program has: `{}`{}", name,
                                    config::suggestion(name, known)));
}

void Datapath::report_strict(Report& report) const {
  const auto& found = violations_.list();
  report.table("violations", found.size(), [&](Report& row, std::size_t i) {
    row.text("what", found[i].text);
    row.count("times", static_cast<std::int64_t>(found[i].count));
  });
  const auto accepted = [this](const Resource& resource) {
    return std::ranges::find(accepted_, name_of(resource)) != accepted_.end();
  };
  std::vector<const Resource*> unjudged, unused;
  for (const Resource& resource : layout_.resources()) {
    if (!is_laid_out(resource) || violations_.has_judged(resource)) continue;
    (resource.unused.empty() ? unjudged : unused).push_back(&resource);
  }
  report.table("not_judged", unjudged.size(), [&](Report& row, std::size_t i) {
    row.text("program", unjudged[i]->program);
    row.text("resource", unjudged[i]->name);
    row.flag("accepted", accepted(*unjudged[i]));
  });
  report.table("unused", unused.size(), [&](Report& row, std::size_t i) {
    row.text("program", unused[i]->program);
    row.text("resource", unused[i]->name);
    row.text("why", unused[i]->unused);
  });
  std::vector<std::string> needless = accepted_;
  for (const Resource* resource : unjudged) std::erase(needless, name_of(*resource));
  report.table("accepted_and_judged", needless.size(),
               [&](Report& row, std::size_t i) { row.text("resource", needless[i]); });
  report.object("layout", [&](Report& object) { report_resources(object, layout_, profile_, used_); });
}

}  // namespace rocebox::switch_model
