// SPDX-License-Identifier: BSD-3-Clause
// The device programs that come with rocebox: beside the command where that is built, or under its prefix.
#pragma once
#include <string>
#include <string_view>

namespace rocebox::nic_model::dpa {

bool library_has(std::string_view name);
/// Their names, for people.
std::string library_names();
/// Where the file of that name is. Throws ConfigError: it was not installed.
std::string library_path(const std::string& name);

}  // namespace rocebox::nic_model::dpa
