// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "runtime/cli/commands.h"
#include "runtime/config/describe.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/packet/eal.h"

namespace rocebox::cli {
namespace {

std::string shape_text(const KernelType& type) {
  if (type.shape == Shape::kTwoSided) return "two-sided";
  return fmt::format("{} in, {} out", type.inputs, type.outputs);
}

constexpr std::uint64_t kTablesMebibytes = 64;

// A kernel names its counters when it is made, so one is made with its defaults.
CounterSet counters_of(const KernelType& type) {
  CounterSet counters;
  config::Mistakes none("");
  config::FieldsReader defaults(nullptr, none);
  start_eal(kTablesMebibytes);  // the tables of a switch are DPDK's
  type.make(defaults, &counters);
  return counters;
}

nlohmann::ordered_json to_json(const KernelType& type) {
  nlohmann::ordered_json json = {{"name", type.name},
                                 {"summary", type.summary},
                                 {"shape", shape_text(type)},
                                 {"inputs", type.inputs},
                                 {"outputs", type.outputs}};
  json["options"] = nlohmann::ordered_json::array();
  for (const config::OptionRow& row : config::describe(type))
    json["options"].push_back(
        {{"name", row.name}, {"type", row.type}, {"range", row.range}, {"default", row.fallback}, {"doc", row.doc}});
  json["counters"] = nlohmann::ordered_json::array();
  const CounterSet counters = counters_of(type);
  for (const CounterSet::Row& row : counters.rows())
    json["counters"].push_back({{"name", row.name}, {"doc", row.sentence}});
  json["examples"] = nlohmann::ordered_json::array();
  for (const Example* example = type.examples; example && example->title; example++)
    json["examples"].push_back({{"title", example->title}, {"yaml", example->yaml}});
  return json;
}

void print(const KernelType& type) {
  fmt::print("{}: {} ({})\n\nOptions\n", type.name, type.summary, shape_text(type));
  const std::vector<config::OptionRow> rows = config::describe(type);
  std::size_t name_width = 0, type_width = 0, default_width = 0;
  for (const config::OptionRow& row : rows) {
    name_width = std::max(name_width, row.name.size());
    type_width = std::max(type_width, row.type.size());
    default_width = std::max(default_width, row.fallback.size());
  }
  for (const config::OptionRow& row : rows)
    fmt::print("  {:<{}}  {:<{}}  {:<{}}  {}{}\n", row.name, name_width, row.type, type_width, row.fallback,
               default_width, row.doc, row.range.empty() ? "" : fmt::format(" ({})", row.range));
  if (rows.empty()) fmt::print("  none\n");
  const CounterSet counters = counters_of(type);
  fmt::print("\nCounters\n");
  std::size_t counter_width = 0;
  for (const CounterSet::Row& row : counters.rows()) counter_width = std::max(counter_width, row.name.size());
  for (const CounterSet::Row& row : counters.rows())
    fmt::print("  {:<{}}  {}\n", row.name, counter_width, row.sentence);
  for (const Example* example = type.examples; example && example->title; example++)
    fmt::print("\nExample: {}\n{}\n", example->title, example->yaml);
}

}  // namespace

int kernels(const KernelsArguments& arguments) {
  const Registry registry = make_registry(arguments.plugins);
  std::vector<std::string> names;
  for (const KernelType* type : registry.types()) names.emplace_back(type->name);
  if (!arguments.name.empty()) {
    const KernelType* type = registry.find(arguments.name);
    if (!type)
      throw ConfigError(
          fmt::format("there is no kernel `{}`{}", arguments.name, config::suggestion(arguments.name, names)));
    if (arguments.json)
      fmt::print("{}\n", to_json(*type).dump(2));
    else
      print(*type);
    return 0;
  }
  if (arguments.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const KernelType* type : registry.types()) all.push_back(to_json(*type));
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  for (const KernelType* type : registry.types())
    fmt::print("{:<12} {:<12} {}\n", type->name, shape_text(*type), type->summary);
  fmt::print("\n`rocebox kernels NAME` shows every option.\n");
  return 0;
}

}  // namespace rocebox::cli
