// SPDX-License-Identifier: BSD-3-Clause
// Who has a lab's name: a folder under /run, and a lock on it that ends with the process.
#pragma once
#include <string>
#include <vector>

#include "runtime/config/document.h"

namespace rocebox::lab {

/// Where the folders of labs are. Namespaces have names for the whole machine, so this place is one for the machine
/// too.
inline constexpr const char* kLabsFolder = "/run/rocebox/lab";

std::string lab_folder(const std::string& lab);
/// Names of labs that stand, or of which something is left.
std::vector<std::string> standing_labs();

/// Holds a lab's folder: no other `rocebox lab` touches the lab meanwhile.
class Claim {
 public:
  enum class For { kNew, kOld };
  /// kNew: makes the folder; refuses when something of such a lab is there. kOld: takes the folder that is there, if
  /// there is one; refuses while another process holds it. Throws ConfigError with the mend.
  Claim(const std::string& lab, For what);
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  const std::string& folder() const { return folder_; }
  /// Whether there is a folder.
  bool held() const { return descriptor_ >= 0; }
  /// Removes the folder.
  void remove();

 private:
  void make();
  bool try_take();
  void take();

  std::string lab_, folder_;
  int descriptor_ = -1;
};

}  // namespace rocebox::lab
