// SPDX-License-Identifier: BSD-3-Clause
// Configurations and what they name, as texts and as paths.
#pragma once
#include <string>
#include <vector>

#include "runtime/limits.h"

namespace rocebox::config {

/// Whether what is read must be a regular file, which is there at once and may be read again; or may be a pipe, too.
enum class Pipes { kRefused, kTaken };

/// Reads a file of at most `bytes_max`, or where pipes are taken what comes from one; `-` is standard input then.
/// Throws ConfigError.
std::string read_text_file(const std::string& path, Pipes pipes = Pipes::kRefused,
                           std::size_t bytes_max = kConfigBytesMax);

/// A path that `file` names, which is relative to its folder, or to the current one when `file` is a descriptor of this
/// process, such as /dev/fd/63, or no path; `-` and `-.pcapng` are standard streams.
std::string beside(const std::string& file, const std::string& path);
/// Where files that come with the command lie: `built` beside it where it was built, and `installed` under its prefix's
/// share/rocebox.
std::vector<std::string> data_folders(const std::string& built, const std::string& installed);

}  // namespace rocebox::config
