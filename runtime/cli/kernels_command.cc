// SPDX-License-Identifier: BSD-3-Clause
// `rocebox kernels`: what can be loaded, and every option of one.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/cli/commands.h"
#include "runtime/config/describe.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/kernel/kernel_options.h"
#include "runtime/process/eal.h"

namespace rocebox::cli {
namespace {

using config::OptionRow;

constexpr std::uint64_t kEalMebibytes = 64;

// The component whose options run this one: itself, or the one inside which it runs.
const Component& host_of(const Component& component, const Registry& registry) {
  const Component* host = component.host ? registry.find(component.host) : nullptr;
  return host ? *host : component;
}

// Null when it is neither an inline kernel nor a device, which are what can be made and has inputs and outputs.
const KernelOptions* kernel_options(const Component& component, const Options& options) {
  const std::string_view kind = component.kind;
  return kind == kKernelKind || kind == kDeviceKind ? &static_cast<const KernelOptions&>(options) : nullptr;
}

std::string shape_text(const Component& component, const Registry& registry) {
  if (component.host) return fmt::format("{} of {}", component.kind, component.host);
  const std::unique_ptr<Options> options = component.options(registry);
  const KernelOptions* kernel = kernel_options(component, *options);
  if (kernel && kernel->shape() == Shape::kTwoSided) return "two-sided";
  if (std::string_view(component.kind) != kKernelKind) return component.kind;
  return fmt::format("{} in, {} out", kernel->inputs(), kernel->outputs());
}

// A kernel names its counters when it is made, so one is made of `yaml`, options of the component itself.
CounterSet counters_of(const Component& component, const Registry& registry, const std::string& yaml) {
  CounterSet counters;
  config::Mistakes mistakes(component.name);
  const config::Node written = config::parse_yaml(yaml, mistakes);
  config::FieldsReader fields(&written, mistakes);
  const std::unique_ptr<Options> options = component.options(registry);
  options->fields(fields);
  if (const KernelOptions* kernel = kernel_options(component, *options)) {
    start_eal(std::max<std::uint64_t>(kEalMebibytes, kernel->eal_bytes() >> 20));
    kernel->make(counters);
  }
  return counters;
}

std::vector<const Component*> guests_of(const Component& component, const Registry& registry) {
  std::vector<const Component*> guests;
  for (const Component* other : registry.all())
    if (other->host && std::string_view(other->host) == component.name) guests.push_back(other);
  return guests;
}

// What `rocebox kernels NAME` tells of.
struct Subject {
  const Component& component;
  const Registry& registry;

  const char* name() const { return component.name; }
  const char* summary() const { return component.summary; }
  std::string shape() const { return shape_text(component, registry); }
};

std::vector<Subject> subjects(const Registry& registry) {
  std::vector<Subject> all;
  for (const Component* component : registry.all())
    if (!component->host) {
      all.push_back({*component, registry});
      for (const Component* guest : guests_of(*component, registry)) all.push_back({*guest, registry});
    }
  return all;
}

// Those that are no guest's, which are told of by themselves.
std::vector<OptionRow> options_of(const Subject& subject) {
  std::vector<OptionRow> rows = config::describe(subject.component, subject.registry);
  for (const Component* guest : guests_of(subject.component, subject.registry))
    std::erase_if(rows, [&](const OptionRow& row) {
      return row.name == guest->name || row.name.starts_with(std::string(guest->name) + ".");
    });
  return rows;
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
  CounterKind kind;
};

// Those of a guest: what its host with it alone has beyond what it has with every one of its guests.
std::vector<CounterText> counters_of(const Subject& subject) {
  const Component& host = host_of(subject.component, subject.registry);
  const auto rows_of = [&](const std::string& yaml) {
    std::vector<CounterText> rows;
    const CounterSet set = counters_of(host, subject.registry, yaml);
    for (const CounterSet::Row& row : set.rows()) rows.push_back({row.name, row.sentence, row.kind()});
    return rows;
  };
  const std::vector<const Component*> guests = guests_of(host, subject.registry);
  if (guests.empty()) return rows_of("{}");
  std::set<std::string> common;
  for (const Component* guest : guests) {
    std::set<std::string> names;
    for (const CounterText& row : rows_of(guest->host_options(*guest)))
      if (guest == guests[0] || common.contains(row.name)) names.insert(row.name);
    common = std::move(names);
  }
  const bool is_guest = &host != &subject.component;
  const Component& run = is_guest ? subject.component : *guests[0];
  std::vector<CounterText> rows = rows_of(run.host_options(run));
  std::erase_if(rows, [&](const CounterText& row) { return common.contains(row.name) == is_guest; });
  return rows;
}

std::vector<Example> examples_of(const Subject& subject) {
  std::vector<Example> all;
  for (const Example* example = subject.component.examples; example && example->title; example++)
    all.push_back(*example);
  return all;
}

nlohmann::ordered_json to_json(const Subject& subject) {
  nlohmann::ordered_json json = {{"name", subject.name()}, {"summary", subject.summary()}, {"shape", subject.shape()}};
  json["kind"] = subject.component.kind;
  if (subject.component.host) {
    json["kernel"] = subject.component.host;
  } else {
    const std::unique_ptr<Options> options = subject.component.options(subject.registry);
    if (const KernelOptions* kernel = kernel_options(subject.component, *options)) {
      json["inputs"] = kernel->inputs();
      json["outputs"] = kernel->outputs();
    }
  }
  json["options"] = nlohmann::ordered_json::array();
  for (const OptionRow& row : options_of(subject))
    json["options"].push_back(
        {{"name", row.name}, {"type", row.type}, {"range", row.range}, {"default", row.fallback}, {"doc", row.doc}});
  json["counters"] = nlohmann::ordered_json::array();
  for (const CounterText& row : counters_of(subject))
    json["counters"].push_back({{"name", row.name}, {"kind", kind_name(row.kind)}, {"doc", row.sentence}});
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

// The option of the host that names its guest: of one such guest `kind: NAME`, of several `kinds: [NAME]`.
std::string chosen_by(const Subject& subject) {
  const std::string kind = subject.component.kind;
  const auto rows = config::describe(host_of(subject.component, subject.registry), subject.registry);
  const bool is_one = std::ranges::find(rows, kind, &OptionRow::name) != rows.end();
  return is_one ? fmt::format("{}: {}", kind, subject.name()) : fmt::format("{}s: [{}]", kind, subject.name());
}

void print(const Subject& subject) {
  fmt::print("{}: {} ({})\n", subject.name(), subject.summary(), subject.shape());
  if (subject.component.host)
    fmt::print("\nIn a device with `{0}:`, as `{0}: {{{1}, {2}: {{OPTION: VALUE}}}}`\n", subject.component.host,
               chosen_by(subject), subject.name());
  fmt::print("\nOptions\n");
  print_options(options_of(subject));
  if (const auto guests = guests_of(subject.component, subject.registry); !guests.empty()) {
    std::string kind = guests[0]->kind;
    std::ranges::replace(kind, '_', ' ');
    fmt::print("\n{}s, each with options of its own: rocebox kernels NAME\n", kind);
    for (const Component* guest : guests) print_wrapped(fmt::format("  {:<10}  ", guest->name), guest->summary);
  }
  fmt::print("\nCounters\n");
  const std::vector<CounterText> counters = counters_of(subject);
  std::size_t width = 0;
  for (const CounterText& row : counters) width = std::max(width, row.name.size());
  for (const CounterText& row : counters)
    print_wrapped(fmt::format("  {:<{}}  ", row.name, width),
                  row.sentence + (row.kind == CounterKind::kCount ? "" : fmt::format(" ({})", kind_name(row.kind))));
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
