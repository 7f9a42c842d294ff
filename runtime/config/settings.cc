// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/component/component.h"

namespace rocebox::config {
namespace {

constexpr std::string_view kParameters = "parameters";
constexpr std::string_view kNameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

std::vector<std::string> keys_of(const Node& map) {
  std::vector<std::string> keys;
  for (const Entry& entry : map.entries) keys.push_back(entry.key);
  return keys;
}

// The value as YAML.
Node value_of(const Setting& setting, Place place, Mistakes& mistakes) {
  Mistakes own("");
  Node node = parse_yaml("value: " + setting.value, own);
  const Node* value = own.none() ? node.find("value") : nullptr;
  if (!value || value->kind == Node::Kind::kNull) {
    mistakes.add(place, "is no value, as YAML has them");
    return {};
  }
  Node result = *value;
  move_to(result, place);
  return result;
}

// The node that a path of keys leads to, made at `place` where it is not there; null when a value stands in the way.
Node* reach(Node& root, std::string_view path, Place place) {
  Node* at = &root;
  while (at) {
    const std::size_t dot = path.find('.');
    const std::string_view key = path.substr(0, dot);
    if (at->kind == Node::Kind::kNull) at->kind = Node::Kind::kMap;
    if (!at->is_map() || key.empty()) return nullptr;
    Node* next = at->find(key);
    if (!next) {
      next = &at->entries.emplace_back(Entry{std::string(key), place, {}}).value;
      next->place = place;
    }
    at = next;
    if (dot == std::string_view::npos) return at;
    path.remove_prefix(dot + 1);
  }
  return nullptr;
}

class Substitution {
 public:
  Substitution(const Node& parameters, Mistakes& mistakes)
      : parameters_(parameters), mistakes_(mistakes), known_(keys_of(parameters)) {}

  void apply(Node& node) {
    if (node.kind == Node::Kind::kScalar) return apply_scalar(node);
    for (Node& item : node.items) apply(item);
    for (Entry& entry : node.entries) apply(entry.value);
  }

 private:
  void apply_scalar(Node& node) {
    const std::string text = node.scalar;
    std::string result;
    Place place = node.place;  // with what has a part in it
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] != '$') {
        result += text[at++];
        continue;
      }
      if (text.compare(at, 2, "$$") == 0) {
        result += '$';
        at += 2;
        continue;
      }
      const std::size_t end = std::min(text.find_first_not_of(kNameLetters, at + 1), text.size());
      const std::string name = text.substr(at + 1, end - at - 1);
      const Node* value = parameters_.find(name);
      if (!value) {
        mistakes_.add(node.place, fmt::format("there is no parameter `${}`{}", name, suggestion(name, known_)));
        return;
      }
      if (const int setting = setting_of(name, *value); value->place.setting != 0 || place.setting == 0)
        place.setting = setting;
      if (at == 0 && end == text.size()) {  // all of it, which may be a list or a mapping
        node = *value;
        return move_to(node, place);
      }
      if (value->kind != Node::Kind::kScalar) {
        mistakes_.add(node.place, fmt::format("parameter `${}` is {}, and cannot be a part of a word", name,
                                              kind_name(value->kind)));
        return;
      }
      result += value->scalar;
      at = end;
    }
    node.scalar = std::move(result);
    node.place = place;
  }

  // What gives a parameter its value: the command line, or the parameter itself.
  int setting_of(const std::string& name, const Node& value) {
    if (value.place.setting != 0) return value.place.setting;
    const auto [found, is_new] = settings_.try_emplace(name);
    if (is_new) found->second = mistakes_.add_setting(fmt::format("`${}` (line {})", name, value.place.line));
    return found->second;
  }

  const Node& parameters_;
  Mistakes& mistakes_;
  const std::vector<std::string> known_;
  std::map<std::string, int> settings_;  // of parameters as they are written
};

// Of a key that is neither a parameter nor an option; empty: it is one.
std::string unknown_key(const std::string& key, const Node& root, const std::vector<std::string>& options) {
  constexpr std::size_t kParametersShown = 12;
  if (std::ranges::find(options, key) != options.end()) return "";
  const Node* parameters = root.find(kParameters);
  const std::vector<std::string> names = parameters ? keys_of(*parameters) : std::vector<std::string>();
  std::vector<std::string> known = names;
  known.insert(known.end(), options.begin(), options.end());
  std::string more = suggestion(key, known);
  if (more.empty() && names.empty())
    more = fmt::format("; there are no parameters: write `parameters: {{{0}: ...}}`, and `${0}` where it stands", key);
  else if (more.empty() && names.size() <= kParametersShown)
    more = fmt::format("; parameters: {}", fmt::join(names, ", "));
  return fmt::format("unknown key `{}`{}", key, more);
}

// Of a path into something that its section, such as `workloads`, has not, though it has others: mostly a misspelt
// name. One that is new is as good, so this is only said where it has a mistake.
std::string unknown_name(const Node& root, std::string_view path) {
  const std::size_t first = path.find('.'), second = path.find('.', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return "";
  const std::string_view name = path.substr(first + 1, second - first - 1);
  const Node* section = root.find(path.substr(0, first));
  if (!section || section->entries.empty() || section->find(name)) return "";
  return fmt::format("; there is no `{}` in `{}`{}", name, path.substr(0, first), suggestion(name, keys_of(*section)));
}

// Where a `$NAME` looks like a parameter, and there are none.
void tell_no_parameters(const Node& node, Mistakes& mistakes) {
  for (const Node& item : node.items) tell_no_parameters(item, mistakes);
  for (const Entry& entry : node.entries) tell_no_parameters(entry.value, mistakes);
  const std::string_view text = node.scalar;
  for (std::size_t at = text.find('$'); at < text.size(); at = text.find('$', at + 1)) {
    const std::size_t end = std::min(text.find_first_not_of(kNameLetters, at + 1), text.size());
    const std::string_view name = text.substr(at + 1, end - at - 1);
    if (name.empty() && text.substr(end, 1) == "$") at = end;  // `$$` is no parameter anywhere
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) continue;
    const std::string how =
        fmt::format("there are no parameters: write such as `parameters: {{{}: 1}}` at the top level", name);
    mistakes.add_hint(node.place, "; " + how);
    return mistakes.add_idle(node.place, fmt::format("`${}` stands for nothing else: {}", name, how));
  }
}

}  // namespace

Setting parse_setting(const std::string& text, const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw ConfigError(fmt::format("{} {}: write KEY=VALUE, such as seed=7 or links.haul.loss=1%", option, text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void apply_settings(Node& root, const std::vector<Setting>& settings, Mistakes& mistakes,
                    const std::function<std::vector<std::string>()>& options) {
  if (!root.is_map()) return;  // told by who reads it
  for (const Setting& setting : settings) {
    const Place place{0, 0, mistakes.add_setting(fmt::format("`{}={}`", setting.key, setting.value))};
    Node* parameters = root.find(kParameters);
    Node* target = parameters ? parameters->find(setting.key) : nullptr;
    if (!target && options && !root.find(setting.key) && setting.key.find('.') == std::string::npos)
      if (const std::string why = unknown_key(setting.key, root, options()); !why.empty()) {
        mistakes.add(place, why);
        continue;
      }
    if (const std::string hint = target ? "" : unknown_name(root, setting.key); !hint.empty())
      mistakes.add_hint(place, hint);
    if (!target) target = reach(root, setting.key, place);
    if (target)
      *target = value_of(setting, place, mistakes);
    else
      mistakes.add(place, "leads to nothing that has keys");
  }
  const Node* parameters = root.find(kParameters);
  if (!parameters) return tell_no_parameters(root, mistakes);
  if (!parameters->is_map()) return;  // another kind is a mistake to who reads it
  const Node values = *parameters;
  Substitution substitution(values, mistakes);
  for (Entry& entry : root.entries)
    if (entry.key != kParameters) substitution.apply(entry.value);
}

}  // namespace rocebox::config
