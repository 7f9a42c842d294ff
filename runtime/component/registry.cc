// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/component/registry.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>

namespace rocebox {

Registry::Registry() {
  for (const Component& component : in_tree_components()) add(component, "the in-tree registry");
}

void Registry::add(const Component& component, const std::string& origin) {
  const std::string name = component.name;
  if (component.abi != kComponentAbi)
    throw ConfigError(origin + ": `" + name + "` was built for component ABI " + std::to_string(component.abi) +
                      ", this rocebox has ABI " + std::to_string(kComponentAbi) +
                      "; build it again with these headers");
  if (!component.kind || !component.options || !component.summary)
    throw ConfigError(origin + ": the row of `" + name + "` has no kind, no summary or no options function");
  if (const Component* other = find(name))
    throw ConfigError(origin + ": there is already a " + other->kind + " named `" + name + "`");
  all_.push_back(&component);
}

void Registry::load_plugin(const std::string& path) {
  // A name without a slash would be searched in the system's library folders.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  // The loader would wait for somebody to write into a pipe.
  struct stat status {};
  if (stat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    throw ConfigError("cannot load plugin " + path + ": it is no regular file");
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const std::string why = dlerror();  // begins with the file's name, as a rule
    throw ConfigError("cannot load plugin " + (why.starts_with(file + ": ") ? why : path + ": " + why));
  }
  const auto components = reinterpret_cast<const Component* (*)()>(dlsym(handle, "rocebox_components"));
  if (!components) {
    const bool older = dlsym(handle, "rocebox_kernel_types") != nullptr;  // what it was called up to ABI 8
    dlclose(handle);
    throw ConfigError("cannot load plugin " + path + ": it does not export rocebox_components()" +
                      (older ? ", but was built for an older rocebox; build it again with these headers" : ""));
  }
  for (const Component* component = components(); component->name; component++) add(*component, "plugin " + path);
  plugins_.push_back(file);
}

const Component* Registry::find(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, [](const Component* c) { return std::string_view(c->name); });
  return found == all_.end() ? nullptr : *found;
}

const Component* Registry::find(std::string_view kind, std::string_view name) const {
  const Component* found = find(name);
  return found && found->kind == kind ? found : nullptr;
}

const Component* Registry::wire() const {
  const auto found = std::ranges::find_if(all_, [](const Component* c) { return c->is_wire; });
  return found == all_.end() ? nullptr : *found;
}

std::vector<const Component*> Registry::of_kind(std::string_view kind) const {
  std::vector<const Component*> some;
  std::ranges::copy_if(all_, std::back_inserter(some), [&](const Component* c) { return c->kind == kind; });
  return some;
}

}  // namespace rocebox
