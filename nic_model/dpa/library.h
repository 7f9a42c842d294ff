// SPDX-License-Identifier: BSD-3-Clause
// The device programs that come with rocebox: beside the command where that is built, or under its prefix.
#pragma once
#include <string>
#include <string_view>

#include "runtime/component/input_file.h"

namespace rocebox::nic_model::dpa {

bool library_has(std::string_view name);
/// Their names, for people.
std::string library_names();
/// Where the file of that name is. Throws ConfigError: it was not installed.
std::string library_path(const std::string& name);

/// What stands in a program's file, and where that is.
struct ProgramFile {
  std::string path, text;
};
/// The program of the library, or, where `name` is empty, the own one. Throws ConfigError: it was not installed.
ProgramFile program_file(const std::string& name, const InputFile& own);

}  // namespace rocebox::nic_model::dpa
