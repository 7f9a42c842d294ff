// SPDX-License-Identifier: BSD-3-Clause
// The components that this process can load: the in-tree array and what plugins brought.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/component/component.h"

namespace rocebox {

/// The in-tree components, an explicit array in kernels/registry.cc. They come through the same door as a plugin's.
std::span<const Component> in_tree_components();
/// A kind of component that somebody asks for.
struct ComponentKind {
  const char* name;
  /// Why `row`, whose options are `options`, cannot be of this kind; null: it can.
  const char* (*refuses)(const Component& row, const Options& options);
  /// The kind of component inside which one of this kind runs; null: it runs by itself.
  const char* host_kind = nullptr;
  /// No configuration names one: its names are told apart from each other only.
  bool own_names = false;
};
/// All of them, in the same file: "kernel", "device", "program", "model", ... A component of another one could never be
/// used, and is refused.
std::span<const ComponentKind> component_kinds();

class Registry;
/// Throws ConfigError when a word would mean two things in one place of a configuration, as an option named like one
/// that stands beside it does, or when a component that runs in another one is no option of that one. In
/// runtime/config/ambiguous_words.cc: it shows itself a whole configuration, so no list of words is kept.
void refuse_ambiguous_words(const Registry& registry);

class Registry {
 public:
  /// Starts with the in-tree components.
  Registry();

  /// Loads a plugin .so and adds its components. It stays loaded until the process ends. Throws ConfigError that
  /// names the file and the reason, and then nothing is added: not found, no rocebox_components, another ABI number, a
  /// name that is none or in use, a kind or host that there is not, a row without options or with those of another
  /// kind, a host that cannot run it, a word that has another meaning where the component or its option would be
  /// written.
  void load_plugin(const std::string& path);
  /// The files that were loaded.
  const std::vector<std::string>& plugins() const { return plugins_; }
  /// Adds rows, which outlive the registry and may name each other as hosts. Throws ConfigError as load_plugin() does.
  void add(std::span<const Component> components, const std::string& origin);
  void add(const Component& component, const std::string& origin) { add(std::span(&component, 1), origin); }

  /// Null when there is none of that name and kind.
  const Component* find(std::string_view kind, std::string_view name) const;
  /// Null when there is none of that name, whatever its kind; kinds of own names aside.
  const Component* find(std::string_view name) const;
  /// Those of a kind, in the order in which they were added.
  std::vector<const Component*> of_kind(std::string_view kind) const;
  /// The component of which links are made; null when there is none.
  const Component* wire() const;
  /// All that a configuration can name: kinds of own names aside.
  const std::vector<const Component*>& all() const { return all_; }

 private:
  void take(const Component& component, const std::string& origin);
  void check(const Component& component, const std::string& origin) const;
  void check_host(const Component& component, const std::string& origin) const;
  void check_wire(const Component& component, const std::string& origin) const;
  void check_kind(const Component& component, const std::string& origin) const;
  void check_words(const std::string& origin) const;

  std::vector<const Component*> all_;
  std::vector<std::string> origins_;  // of each of all_
  std::vector<std::string> plugins_;
  std::vector<const Component*> apart_;     // of kinds of own names
  std::vector<std::string> apart_origins_;  // of each of apart_
};

}  // namespace rocebox
