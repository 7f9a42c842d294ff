// SPDX-License-Identifier: BSD-3-Clause
// Options of components, filled from YAML or by other fields, and kernels made of them.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/component/registry.h"
#include "runtime/config/fields_reader.h"
#include "runtime/kernel/kernel_options.h"

namespace rocebox::test {

/// The in-tree components.
inline const Registry& in_tree() {
  static const Registry registry;
  return registry;
}

/// The component of that name, which must be there.
inline const Component& component(const char* name, const Registry& registry = in_tree()) {
  const Component* found = registry.find(name);
  EXPECT_TRUE(found) << name;
  return *found;
}

/// Options of a kernel or device as `fields` fills them.
inline std::shared_ptr<KernelOptions> options_by(const Component& component, Fields& fields,
                                                 const Registry& registry = in_tree()) {
  const std::shared_ptr<Options> options = component.options(registry);
  options->fields(fields);
  return std::static_pointer_cast<KernelOptions>(options);
}

/// The same from YAML, in which nothing may be wrong. `values`: what came out of each option.
inline std::shared_ptr<KernelOptions> options_of(const Component& component, const std::string& yaml,
                                                 OptionValues* values = nullptr, const Registry& registry = in_tree()) {
  config::Mistakes mistakes(component.name);
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader reader(&node, mistakes);
  const auto options = options_by(component, reader, registry);
  reader.finish();
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  if (values) *values = reader.values();
  return options;
}

}  // namespace rocebox::test
