// SPDX-License-Identifier: BSD-3-Clause
// Datapath: new options while it runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "switch_model/datapath.h"

namespace rocebox::switch_model {

namespace {

// Whether `path` is the option `name`, or below it: `forward.routes[0].prefix` is below `forward.routes`.
bool is_within(std::string_view path, std::string_view name) {
  return path.starts_with(name) && (path.size() == name.size() || path[name.size()] == '[' || path[name.size()] == '.');
}

}  // namespace

// What cannot be changed while the switch runs, with its value.
OptionTexts Datapath::fixed_options(const Config& config) const {
  // Fields are shown as references that a reader writes to; the recorder does not.
  OptionTexts texts = option_texts([&](Fields& fields) { const_cast<Config&>(config).fields(fields); });
  const std::vector<std::string> changeable = changeable_options(config);
  std::erase_if(texts, [&](const auto& option) {
    return std::ranges::any_of(changeable, [&](const std::string& name) { return is_within(option.first, name); });
  });
  return texts;
}

std::vector<std::string> Datapath::changeable_options(const Config& config) const {
  std::vector<std::string> paths;
  for (const std::string& name : names_)
    for (const std::string_view option : config.find(name)->changeable())
      paths.push_back(fmt::format("{}.{}", name, option));
  return paths;
}

class Datapath::NewOptions final : public Change {
 public:
  explicit NewOptions(std::vector<std::unique_ptr<ProgramChange>> changes) : changes_(std::move(changes)) {}
  void apply(Kernel& kernel, Nanos) override {
    auto& programs = static_cast<Datapath&>(kernel).programs_;
    for (std::size_t i = 0; i < programs.size(); i++)
      if (changes_[i]) changes_[i]->apply(*programs[i]);
  }

 private:
  std::vector<std::unique_ptr<ProgramChange>> changes_;
};

std::unique_ptr<Change> Datapath::prepare(const Config& config) const {
  const OptionTexts fixed = fixed_options(config);
  if (fixed != fixed_options_) {
    const std::size_t size = std::min(fixed.size(), fixed_options_.size());
    std::size_t at = 0;
    while (at + 1 < size && fixed[at] == fixed_options_[at]) at++;
    const std::vector<std::string> changeable = changeable_options(config);
    throw ConfigError(fmt::format("switch: `{}` cannot be changed while it runs{}", fixed[at].first,
                                  changeable.empty() ? "" : fmt::format("; only {} can", fmt::join(changeable, ", "))));
  }
  std::vector<std::unique_ptr<ProgramChange>> changes;
  for (std::size_t i = 0; i < names_.size(); i++) changes.push_back(config.find(names_[i])->prepare(*programs_[i]));
  return std::make_unique<NewOptions>(std::move(changes));
}

}  // namespace rocebox::switch_model
