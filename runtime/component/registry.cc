// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/component/registry.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>

namespace rocebox {
namespace {

bool is_name(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !text.empty() && text[0] != '-' && text.find_first_not_of(kLetters) == std::string_view::npos;
}

std::string known_kinds() {
  std::string list;
  for (const ComponentKind& kind : component_kinds()) (list += list.empty() ? "" : ", ") += kind.name;
  return list;
}

// Null when nobody asks for it.
const ComponentKind* find_kind(std::string_view name) {
  const auto found = std::ranges::find(component_kinds(), name, &ComponentKind::name);
  return found == component_kinds().end() ? nullptr : &*found;
}

}  // namespace

Registry::Registry() { add(in_tree_components(), "the in-tree registry"); }

void Registry::add(std::span<const Component> components, const std::string& origin) {
  const std::size_t before = all_.size(), apart_before = apart_.size();
  try {
    for (const Component& component : components) {
      check(component, origin);
      take(component, origin);
    }
    for (const Component& component : components) check_host(component, origin);
    for (const Component& component : components) check_wire(component, origin);
    for (const Component& component : components) check_kind(component, origin);
    check_words(origin);
  } catch (const ConfigError&) {
    all_.resize(before);
    origins_.resize(before);
    apart_.resize(apart_before);
    apart_origins_.resize(apart_before);
    throw;
  }
}

void Registry::take(const Component& component, const std::string& origin) {
  const bool apart = find_kind(component.kind)->own_names;
  (apart ? apart_ : all_).push_back(&component);
  (apart ? apart_origins_ : origins_).push_back(origin);
}

void Registry::check(const Component& component, const std::string& origin) const {
  const std::string name = component.name ? component.name : "";
  const auto refuse = [&](const std::string& why) { throw ConfigError(origin + ": " + why); };
  // Before all else: of a row of another ABI nothing behind the name may be looked at.
  if (component.abi != kComponentAbi)
    refuse("`" + name + "` was built for component ABI " + std::to_string(component.abi) + ", this rocebox has ABI " +
           std::to_string(kComponentAbi) + "; build it again with these headers");
  if (!is_name(name))
    refuse("a component is named `" + name + "`, which is no name: use letters, digits, _ and -, and begin with no -");
  for (const auto& [missing, what] : {std::pair(!component.kind, "kind"),
                                      {!component.summary, "summary"},
                                      {!component.options, "options function"},
                                      {component.host && !component.host_options, "host_options function"}})
    if (missing) refuse("the row of `" + name + "` has no " + what);
  if (!component.options(*this)) refuse("the options function of `" + name + "` makes none");
  if (!find_kind(component.kind))
    refuse("`" + name + "` is of kind `" + component.kind + "`, which nothing asks for; known: " + known_kinds());
  const ComponentKind& kind = *find_kind(component.kind);
  const std::vector<const Component*>& there = kind.own_names ? apart_ : all_;
  const auto other = std::ranges::find_if(there, [&](const Component* c) {
    return c->name == name && (!kind.own_names || std::string_view(c->kind) == kind.name);
  });
  if (other != there.end())
    refuse(std::string("there is already a ") + (*other)->kind + " named `" + name + "`, from " +
           (kind.own_names ? apart_origins_ : origins_)[static_cast<std::size_t>(other - there.begin())]);
}

void Registry::check_wire(const Component& component, const std::string& origin) const {
  if (component.is_wire && wire() != &component)
    throw ConfigError(origin + ": `" + component.name + "` would be what links are made of, and `" + wire()->name +
                      "` is already");
}

void Registry::check_host(const Component& component, const std::string& origin) const {
  if (!component.host) return;
  const Component* host = find(component.host);
  if (!host)
    throw ConfigError(origin + ": `" + component.name + "` runs in `" + component.host +
                      "`, and there is no component of that name");
  if (host->host)
    throw ConfigError(origin + ": `" + component.name + "` runs in `" + component.host + "`, which runs in `" +
                      host->host + "` and in which nothing runs");
}

void Registry::check_kind(const Component& component, const std::string& origin) const {
  const ComponentKind& kind = *find_kind(component.kind);
  const std::string what = origin + ": the " + component.kind + " `" + component.name + "` ";
  if (const char* why = kind.refuses(component, *component.options(*this))) throw ConfigError(what + why);
  if (!kind.host_kind) return;
  if (!component.host) throw ConfigError(what + "has no host: name the " + kind.host_kind + " in which it runs");
  const Component* host = find(component.host);
  if (std::string_view(host->kind) != kind.host_kind)
    throw ConfigError(what + "runs in `" + component.host + "`, which is a " + host->kind + "; it must be a " +
                      kind.host_kind);
}

void Registry::check_words(const std::string& origin) const {
  try {
    refuse_ambiguous_words(*this);
  } catch (const ConfigError& error) {
    throw ConfigError(origin + ": " + error.what());
  }
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
  const Component* rows = components();
  std::size_t count = 0;
  while (rows && rows[count].name && (count == 0 || rows[count - 1].abi == kComponentAbi)) count++;
  if (count == 0) throw ConfigError("cannot load plugin " + path + ": its rocebox_components() has no component");
  add(std::span(rows, count), "plugin " + path);
  plugins_.push_back(file);
}

const Component* Registry::find(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, [](const Component* c) { return std::string_view(c->name); });
  return found == all_.end() ? nullptr : *found;
}

const Component* Registry::find(std::string_view kind, std::string_view name) const {
  for (const Component* row : of_kind(kind))
    if (row->name == name) return row;
  return nullptr;
}

const Component* Registry::wire() const {
  const auto found = std::ranges::find_if(all_, [](const Component* c) { return c->is_wire; });
  return found == all_.end() ? nullptr : *found;
}

std::vector<const Component*> Registry::of_kind(std::string_view kind) const {
  std::vector<const Component*> some;
  for (const auto* rows : {&all_, &apart_})
    std::ranges::copy_if(*rows, std::back_inserter(some), [&](const Component* c) { return c->kind == kind; });
  return some;
}

}  // namespace rocebox
