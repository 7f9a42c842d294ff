// SPDX-License-Identifier: BSD-3-Clause
// Component: anything that a configuration can name and a plugin can bring: an inline kernel, a kind of device, a
// program of a switch. One row each; all that can be had of it is had from its options.
#pragma once
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace rocebox {

class Fields;
class Registry;

/// What makes a configuration unusable; thrown while loading only, and the only exception of the system.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The options of a component: made with their defaults, filled once from what was written, and kept as long as the
/// configuration. What else they offer depends on the component's kind: KernelOptions, DeviceOptions, and those that
/// the models add.
class Options {
 public:
  virtual ~Options() = default;
  /// Shows every option, once, to `fields`, which fills, describes or lists them; says by Fields::refuse what cannot
  /// be.
  virtual void fields(Fields& fields) = 0;
};

/// A ready configuration: shown by `rocebox kernels NAME`, and run by the tests of the contracts.
struct Example {
  const char* title;  ///< null ends the array
  const char* yaml;   ///< the options of the component, or of its host
};

/// A row of the registry, and of a plugin's table. `abi`, `kind` and `name` stay its first members: they are read of
/// rows of other ABIs, too.
struct Component {
  std::uint32_t abi;    ///< refused, with both numbers named, when it is not kComponentAbi
  const char* kind;     ///< one of component_kinds(): components are looked up by kind and name
  const char* name;     ///< letters, digits, _ and -; no two of all kinds share one, those of ComponentKind::own_names
                        ///< aside; null ends a plugin's table; no word that has a meaning where the name is written in
                        ///< a configuration, such as `path`
  const char* summary;  ///< one line
  /// New options with their defaults; `registry` outlives them. Never null.
  std::unique_ptr<Options> (*options)(const Registry& registry);
  const Example* examples = nullptr;  ///< ended by a null title; may be null
  /// The component inside which this one runs, by name, and options of that one, as YAML, with which it runs this one
  /// and no other. Null: it runs by itself.
  const char* host = nullptr;
  std::string (*host_options)(const Component& self) = nullptr;
  /// The two-sided kernel of which `links:` of a configuration are made, where ports of devices are joined.
  bool is_wire = false;
};

/// Raised whenever a type that crosses the plugin boundary changes.
inline constexpr std::uint32_t kComponentAbi = 27;

}  // namespace rocebox

/// What a plugin .so exports: its components, ended by a row with a null name.
extern "C" const rocebox::Component* rocebox_components();
