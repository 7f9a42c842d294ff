// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "nic_model/dpa/program.h"
#include "runtime/component/component.h"

namespace rocebox::nic_model::dpa {
namespace {

constexpr std::string_view kNames[] = {"bitmap", "chunks", "counter", "echo", "ping_pong"};

}  // namespace

bool library_has(std::string_view name) { return std::ranges::find(kNames, name) != std::end(kNames); }

std::string library_names() { return fmt::format("{}", fmt::join(kNames, ", ")); }

std::string library_path(const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path own = fs::read_symlink("/proc/self/exe").parent_path();
  // The folder of libraries has another name on each distribution; tests and benches are deeper in the folder of a
  // build.
  for (const char* folder : {"dpa", "../dpa", "../../dpa", "../lib/rocebox/dpa", "../lib/x86_64-linux-gnu/rocebox/dpa",
                             "../lib/aarch64-linux-gnu/rocebox/dpa", "../lib64/rocebox/dpa"})
    if (const fs::path file = own / folder / (name + ".so"); fs::exists(file)) return file.lexically_normal().string();
  // This code may be a shared library of somebody's program: beside that, or in its folder of ours.
  Dl_info about{};
  if (dladdr(reinterpret_cast<const void*>(&library_path), &about) && about.dli_fname) {
    const fs::path library = fs::weakly_canonical(about.dli_fname).parent_path();
    for (const char* folder : {"dpa", "rocebox/dpa"})
      if (const fs::path file = library / folder / (name + ".so"); fs::exists(file)) return file.string();
  }
  throw ConfigError(fmt::format("the device program `{}` is not beside the command, nor under its prefix", name));
}

ProgramFile program_file(const std::string& name, const InputFile& own) {
  if (name.empty()) return {own.path, own.text};
  const std::string path = library_path(name);
  return {path, Program::read(path)};
}

}  // namespace rocebox::nic_model::dpa
