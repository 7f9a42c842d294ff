// SPDX-License-Identifier: BSD-3-Clause
// Where a path leads: to a file, whatever its names, or to a stream that this process has open already.
#pragma once
#include <sys/stat.h>

#include <string>
#include <string_view>

namespace rocebox {

/// Symbolic links are followed as far as they go; the last step need not exist.
struct FilePlace {
  std::string path;
  int descriptor = -1;   ///< of this process, as `-`, /dev/stdin and /dev/fd/N lead to one; else -1
  bool endless = false;  ///< links that lead in a circle

  /// False, with errno, when there is nothing.
  bool status(struct stat& status) const;
};

/// `dash` is the descriptor that `-` means: 0 where something is read, 1 where it is written.
FilePlace follow(const std::string& path, int dash);

/// Equal for two paths that lead to one file or pipe, existing or not, however they are spelled. Empty for devices such
/// as /dev/null, which outputs may share.
std::string file_key(const std::string& path, int dash);

/// Whether an output is standard output by these names.
inline bool is_dash(std::string_view path) { return path == "-" || path == "-.pcapng"; }

/// What stands for something that is read in messages and reports: its path; "standard input" for `-`.
std::string shown_file(const std::string& path);
/// The same for an output.
std::string shown_output(const std::string& path);

}  // namespace rocebox
