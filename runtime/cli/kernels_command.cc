// SPDX-License-Identifier: BSD-3-Clause
// `rocebox kernels`: what can be loaded, and every option of one.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/cli/commands.h"
#include "runtime/config/describe.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/process/eal.h"

namespace rocebox::cli {
namespace {

using config::OptionRow;

std::string shape_text(const KernelType& type) {
  if (type.shape == Shape::kTwoSided) return "two-sided";
  return fmt::format("{} in, {} out", type.inputs, type.outputs);
}

constexpr std::uint64_t kTablesMebibytes = 64;

// A kernel names its counters when it is made, so one is made; without options: with its defaults.
CounterSet counters_of(const KernelType& type, const char* yaml = "{}") {
  CounterSet counters;
  config::Mistakes mistakes(type.name);
  const config::Node options = config::parse_yaml(yaml, mistakes);
  config::FieldsReader fields(&options, mistakes);
  start_eal(kTablesMebibytes);  // the tables of a switch are DPDK's
  type.make(fields, &counters);
  return counters;
}

std::vector<const KernelPart*> parts_of(const KernelType& type) {
  std::vector<const KernelPart*> parts;
  for (const KernelPart* part = type.parts; part && part->name; part++) parts.push_back(part);
  return parts;
}

// What `rocebox kernels NAME` tells of: a kernel, or a part of one.
struct Subject {
  const KernelType& type;
  const KernelPart* part = nullptr;

  const char* name() const { return part ? part->name : type.name; }
  const char* summary() const { return part ? part->summary : type.summary; }
  std::string shape() const { return part ? fmt::format("{} of {}", part->kind, type.name) : shape_text(type); }
};

std::vector<Subject> subjects(const Registry& registry) {
  std::vector<Subject> all;
  for (const KernelType* type : registry.types()) {
    all.push_back({*type});
    for (const KernelPart* part : parts_of(*type)) all.push_back({*type, part});
  }
  return all;
}

// A part's options by their names within its group; of a kernel those that are no part's.
std::vector<OptionRow> options_of(const Subject& subject) {
  std::vector<OptionRow> some;
  const auto is_of = [](const OptionRow& row, const KernelPart& part) {
    return row.name == part.name || row.name.starts_with(std::string(part.name) + ".");
  };
  const std::vector<const KernelPart*> parts = parts_of(subject.type);
  for (OptionRow& row : config::describe(subject.type)) {
    if (!subject.part) {
      if (std::none_of(parts.begin(), parts.end(), [&](const KernelPart* part) { return is_of(row, *part); }))
        some.push_back(std::move(row));
    } else if (is_of(row, *subject.part) && row.name != subject.part->name) {
      row.name.erase(0, std::string_view(subject.part->name).size() + 1);
      some.push_back(std::move(row));
    }
  }
  return some;
}

// A group that only repeats options which stand outside of it, such as those for one direction, is told in one row.
std::vector<OptionRow> without_repetitions(const std::vector<OptionRow>& rows) {
  std::vector<OptionRow> some;
  for (std::size_t i = 0; i < rows.size(); i++) {
    const std::string prefix = rows[i].name + ".";
    std::size_t end = i + 1;
    bool repeats = rows[i].type == "group";
    for (; end < rows.size() && rows[end].name.starts_with(prefix); end++)
      repeats = repeats && std::any_of(rows.begin(), rows.end(), [&, inner = rows[end]](const OptionRow& outer) {
                  return outer.name == inner.name.substr(prefix.size()) && outer.type == inner.type &&
                         outer.fallback == inner.fallback && outer.range == inner.range && outer.doc == inner.doc;
                });
    some.push_back(rows[i]);
    if (!repeats || end == i + 1) continue;
    some.back().name = prefix + "*";
    some.back().doc += "; each option above that is not written there counts here, too";
    i = end - 1;
  }
  return some;
}

struct CounterText {
  std::string name, sentence;
};

// Those of a part: what the kernel with it alone has beyond what it has with every one of its parts.
std::vector<CounterText> counters_of(const Subject& subject) {
  const auto rows_of = [&](const char* yaml) {
    std::vector<CounterText> rows;
    const CounterSet set = counters_of(subject.type, yaml);
    for (const CounterSet::Row& row : set.rows()) rows.push_back({row.name, row.sentence});
    return rows;
  };
  const std::vector<const KernelPart*> parts = parts_of(subject.type);
  if (parts.empty()) return rows_of("{}");
  std::set<std::string> common;
  for (const KernelPart* part : parts) {
    std::set<std::string> names;
    for (const CounterText& row : rows_of(part->yaml))
      if (part == parts[0] || common.contains(row.name)) names.insert(row.name);
    common = std::move(names);
  }
  std::vector<CounterText> rows = rows_of(subject.part ? subject.part->yaml : parts[0]->yaml);
  std::erase_if(rows, [&](const CounterText& row) { return common.contains(row.name) == (subject.part != nullptr); });
  return rows;
}

std::vector<Example> examples_of(const Subject& subject) {
  const auto list = [](const Example* example) {
    std::vector<Example> all;
    for (; example && example->title; example++) all.push_back(*example);
    return all;
  };
  if (subject.part) return list(subject.part->examples);
  std::set<std::string> others;
  for (const KernelPart* part : parts_of(subject.type))
    for (const Example& example : list(part->examples)) others.insert(example.title);
  std::vector<Example> own = list(subject.type.examples);
  std::erase_if(own, [&](const Example& example) { return others.contains(example.title); });
  return own;
}

nlohmann::ordered_json to_json(const Subject& subject) {
  nlohmann::ordered_json json = {{"name", subject.name()}, {"summary", subject.summary()}, {"shape", subject.shape()}};
  if (subject.part) {
    json["kind"] = subject.part->kind;
    json["kernel"] = subject.type.name;
  } else {
    json["inputs"] = subject.type.inputs;
    json["outputs"] = subject.type.outputs;
  }
  json["options"] = nlohmann::ordered_json::array();
  for (const OptionRow& row : options_of(subject))
    json["options"].push_back(
        {{"name", row.name}, {"type", row.type}, {"range", row.range}, {"default", row.fallback}, {"doc", row.doc}});
  json["counters"] = nlohmann::ordered_json::array();
  for (const CounterText& row : counters_of(subject))
    json["counters"].push_back({{"name", row.name}, {"doc", row.sentence}});
  json["examples"] = nlohmann::ordered_json::array();
  for (const Example& example : examples_of(subject))
    json["examples"].push_back({{"title", example.title}, {"yaml", example.yaml}});
  return json;
}

// A word that is wider than its column may be stands in the sentence instead.
void print_options(const std::vector<OptionRow>& all) {
  constexpr std::size_t kTypeWidth = 20;
  std::vector<OptionRow> rows = without_repetitions(all);
  std::size_t name_width = 0, type_width = 0, default_width = 0;
  for (OptionRow& row : rows) {
    if (row.type.size() > kTypeWidth && row.type.find('|') != std::string::npos) {
      row.range = "one of " + row.type;
      row.type = "word";
    }
    name_width = std::max(name_width, row.name.size());
    type_width = std::max(type_width, row.type.size());
    default_width = std::max(default_width, row.fallback.size());
  }
  for (const OptionRow& row : rows)
    print_wrapped(fmt::format("  {:<{}}  {:<{}}  {:<{}}  ", row.name, name_width, row.type, type_width, row.fallback,
                              default_width),
                  row.doc + (row.range.empty() ? "" : fmt::format(" ({})", row.range)));
  if (rows.empty()) fmt::print("  none\n");
}

void print(const Subject& subject) {
  fmt::print("{}: {} ({})\n", subject.name(), subject.summary(), subject.shape());
  if (subject.part)
    fmt::print("\nIn a device with `{0}:`, as `{0}: {{{1}s: [{2}], {2}: {{OPTION: VALUE}}}}`\n", subject.type.name,
               subject.part->kind, subject.part->name);
  fmt::print("\nOptions\n");
  print_options(options_of(subject));
  if (const std::vector<const KernelPart*> parts = parts_of(subject.type); !subject.part && !parts.empty()) {
    fmt::print("\n{}s, each with options of its own: rocebox kernels NAME\n", parts[0]->kind);
    for (const KernelPart* part : parts) print_wrapped(fmt::format("  {:<10}  ", part->name), part->summary);
  }
  fmt::print("\nCounters\n");
  const std::vector<CounterText> counters = counters_of(subject);
  std::size_t width = 0;
  for (const CounterText& row : counters) width = std::max(width, row.name.size());
  for (const CounterText& row : counters) print_wrapped(fmt::format("  {:<{}}  ", row.name, width), row.sentence);
  if (counters.empty()) fmt::print("  none\n");
  for (const Example& example : examples_of(subject)) fmt::print("\nExample: {}\n{}\n", example.title, example.yaml);
}

}  // namespace

int kernels(const KernelsArguments& arguments) {
  const Registry registry = make_registry(arguments.plugins);
  const std::vector<Subject> all = subjects(registry);
  if (!arguments.name.empty()) {
    std::vector<std::string> names;
    for (const Subject& subject : all) names.emplace_back(subject.name());
    const auto found = std::find(names.begin(), names.end(), arguments.name);
    if (found == names.end())
      throw ConfigError(fmt::format("there is no kernel and no program `{}`{}", arguments.name,
                                    config::suggestion(arguments.name, names)));
    const Subject& subject = all[static_cast<std::size_t>(found - names.begin())];
    if (arguments.json)
      fmt::print("{}\n", to_json(subject).dump(2));
    else
      print(subject);
    return 0;
  }
  if (arguments.json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Subject& subject : all) rows.push_back(to_json(subject));
    fmt::print("{}\n", rows.dump(2));
    return 0;
  }
  for (const Subject& subject : all)
    print_wrapped(fmt::format("{:<10}  {:<17}  ", subject.name(), subject.shape()), subject.summary());
  fmt::print("\n`rocebox kernels NAME` shows every option.\n");
  return 0;
}

}  // namespace rocebox::cli
