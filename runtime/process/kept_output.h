// SPDX-License-Identifier: BSD-3-Clause
// What libraries print by themselves, kept for those who may need it.
#pragma once
#include <string>

namespace rocebox {

/// While it lives, what is written to a descriptor (standard output or error) is kept instead. One for each at a time,
/// while no other thread prints.
class KeptOutput {
 public:
  explicit KeptOutput(int descriptor);
  ~KeptOutput();
  KeptOutput(const KeptOutput&) = delete;
  KeptOutput& operator=(const KeptOutput&) = delete;
  /// What was kept so far.
  std::string text();

 private:
  int descriptor_, kept_, original_ = -1;
};

}  // namespace rocebox
