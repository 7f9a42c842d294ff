// SPDX-License-Identifier: BSD-3-Clause
// Words that would mean two things in one place of a configuration. What is written there is what the fields declare,
// so a whole configuration is shown to a visitor that remembers the names of each mapping: no list of words is kept.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/config/describe.h"
#include "runtime/config/one_line.h"
#include "runtime/config/top_fields.h"

namespace rocebox::config {
namespace {

// One mapping of the configuration. Throws when a name is shown twice.
class NamesOnce final : public ConfigFields {
 public:
  NamesOnce(const Registry& registry, std::string place) : registry_(registry), place_(std::move(place)) {}

  void boolean(std::string_view name, bool&, std::string_view) override { take(name); }
  void integer(std::string_view name, std::int64_t&, Range<std::int64_t>, std::string_view) override { take(name); }
  void duration(std::string_view name, Nanos&, Range<Nanos>, std::string_view) override { take(name); }
  void duration_or(std::string_view name, std::optional<Nanos>&, std::string_view, Range<Nanos>,
                   std::string_view) override {
    take(name);
  }
  void rate(std::string_view name, std::uint64_t&, Range<std::uint64_t>, std::string_view) override { take(name); }
  void bytes(std::string_view name, std::uint64_t&, Range<std::uint64_t>, std::string_view) override { take(name); }
  void fraction(std::string_view name, double&, Range<double>, std::string_view) override { take(name); }
  void mac(std::string_view name, std::optional<roce::Mac>&, Presence, std::string_view) override { take(name); }
  void address(std::string_view name, std::optional<roce::IpAddress>&, Presence, std::string_view) override {
    take(name);
  }
  void prefix(std::string_view name, std::optional<roce::Prefix>&, Presence, std::string_view) override { take(name); }
  void text(std::string_view name, std::string&, std::string_view) override { take(name); }
  void texts(std::string_view name, std::vector<std::string>&, std::string_view) override { take(name); }
  void choice(std::string_view name, int&, std::span<const std::string_view> words, std::string_view) override {
    take(name);
    NamesOnce values = inside(name);
    for (const std::string_view word : words) values.take(word);
  }
  void group(std::string_view name, std::string_view, const std::function<void(Fields&)>& fields) override {
    take(name);
    NamesOnce nested = inside(name);
    fields(nested);
  }
  void items(std::string_view name, std::string_view, std::size_t, std::size_t,
             const std::function<void(Fields&, std::size_t)>& item) override {
    take(name);
    NamesOnce nested = inside(name);
    item(nested, SIZE_MAX);
  }
  void named(std::string_view name, std::string_view, const std::vector<std::string>&,
             const std::function<void(ConfigFields&, const std::string&)>& entry) override {
    take(name);
    NamesOnce nested = inside(fmt::format("{}.NAME", name));
    entry(nested, "*");
  }
  void section(std::string_view name, std::string_view, const std::function<void(ConfigFields&)>& fields) override {
    take(name);
    NamesOnce nested = inside(name);
    fields(nested);
  }
  void values_by_name(std::string_view name, std::string_view) override { take(name); }
  void component_options(std::string_view kind, const std::function<void(Fields&)>&) override {
    for (const Component* component : registry_.of_kind(kind)) {
      NamesOnce with = *this;
      with.component_ = fmt::format("{} `{}`", kind, component->name);
      component->options(registry_)->fields(with);
    }
  }
  bool given(std::string_view) override { return false; }
  void refuse(std::string_view, std::string_view) override {}

 private:
  NamesOnce inside(std::string_view name) const {
    NamesOnce nested(registry_, place_.empty() ? std::string(name) : fmt::format("{}.{}", place_, name));
    nested.component_ = component_;
    return nested;
  }
  void take(std::string_view name) {
    if (names_.emplace(name).second) return;
    const Component* component = component_.empty() ? registry_.find(name) : nullptr;
    const std::string whose = component            ? fmt::format("the {}", component->kind)
                              : component_.empty() ? "the option"
                                                   : fmt::format("the option of {}", component_);
    throw ConfigError(fmt::format("`{}` would mean two things in `{}`: give {} another name", name, place_, whose));
  }

  const Registry& registry_;
  std::string place_;      // such as devices.NAME.kernels.NAME
  std::string component_;  // whose options are shown, such as "kernel `link`"; empty: none that a path or row names
  std::set<std::string, std::less<>> names_;
};

}  // namespace
}  // namespace rocebox::config

namespace rocebox {

void refuse_ambiguous_words(const Registry& registry) {
  config::NamesOnce names(registry, "");
  config::TopFields(registry).fields(names);
  for (const char* port : config::kOneLinePorts)
    for (const char* kind : {kKernelKind, kDeviceKind})  // the words of a path
      if (registry.find(kind, port))
        throw ConfigError(
            fmt::format("`{}` is a port wherever the command line has the path: give the {} another name", port, kind));
  for (const ComponentKind& kind : component_kinds()) {
    if (!kind.host_kind) continue;
    for (const Component* guest : registry.of_kind(kind.name)) {
      const auto rows = config::describe(*registry.find(guest->host), registry);
      if (std::ranges::find(rows, guest->name, &config::OptionRow::name) == rows.end())
        throw ConfigError(fmt::format("the {0} `{1}` runs in `{2}`, which has no option `{1}` and so runs no {0}",
                                      kind.name, guest->name, guest->host));
    }
  }
}

}  // namespace rocebox
