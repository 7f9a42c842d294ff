// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/component/registry.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include "runtime/limits.h"

namespace rocebox {

Registry::Registry() {
  for (const KernelType& type : in_tree_kernels()) add(type, "the in-tree registry");
}

void Registry::add(const KernelType& type, const std::string& origin) {
  const std::string name = type.name;
  if (type.abi != kKernelAbi)
    throw ConfigError(origin + ": kernel `" + name + "` was built for kernel ABI " + std::to_string(type.abi) +
                      ", this rocebox has ABI " + std::to_string(kKernelAbi) + "; build it again with these headers");
  if (find(name)) throw ConfigError(origin + ": there is already a kernel named `" + name + "`");
  const bool two_sided = type.shape == Shape::kTwoSided;
  if (!type.make || type.inputs == 0 || type.inputs > kPortsMax || type.outputs > kPortsMax ||
      (two_sided && (type.inputs != 2 || type.outputs != 2)))
    throw ConfigError(origin + ": the row of kernel `" + name + "` has impossible ports or no make function");
  types_.push_back(&type);
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
  const auto types = reinterpret_cast<const KernelType* (*)()>(dlsym(handle, "rocebox_kernel_types"));
  if (!types) {
    dlclose(handle);
    throw ConfigError("cannot load plugin " + path + ": it does not export rocebox_kernel_types()");
  }
  for (const KernelType* type = types(); type->name; type++) add(*type, "plugin " + path);
  plugins_.push_back(file);
}

const KernelType* Registry::find(std::string_view name) const {
  for (const KernelType* type : types_)
    if (name == type->name) return type;
  return nullptr;
}

}  // namespace rocebox
