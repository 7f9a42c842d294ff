// SPDX-License-Identifier: BSD-3-Clause
// HintsFile: hints that applications write into a file which they have mapped (include/rocebox_hints.h has its bytes).
// It is read here and not mapped: who maps a file that somebody makes shorter dies of it.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/scr/limits.h"
#include "runtime/kernel/counter.h"
#include "runtime/packet/packet.h"

namespace rocebox::scr {

class HintsFile {
 public:
  struct Hint {
    std::uint32_t qpn = 0;
    std::uint64_t weight = 0;
  };
  /// An empty `path`: there is none. It need not be there yet.
  HintsFile(const std::string& path, Nanos period, Stats& stats);
  ~HintsFile();
  HintsFile(const HintsFile&) = delete;
  HintsFile& operator=(const HintsFile&) = delete;

  /// When look() has something to do.
  Nanos due() const { return next_; }
  /// What is new by now, of whole rows alone, until the next call. A call of the system where it is due, two where
  /// something is new.
  std::span<const Hint> look(Nanos now);

 private:
  bool is_open(Nanos now);
  void check_file(Nanos now);
  void give_up(Nanos now, Counter& why);
  bool read(std::size_t from, std::size_t bytes, void* to) const;
  void take_rows(const rocebox_hints& header);

  const std::string path_;
  const Nanos period_;
  Counter &missing_, &unusable_, &torn_, &taken_;
  Nanos next_, retry_ = 0, same_until_ = 0;
  int file_ = -1;
  struct stat about_ {};  // the file, when it was looked at last
  std::uint32_t changes_ = 0;
  bool is_new_ = true;  // rows are to be read whatever `changes` says
  bool has_torn_ = false;
  std::vector<rocebox_hint_row> rows_;
  struct Seen {
    std::uint32_t told = 0, torn = 0;  // sequences
    std::uint64_t check = 0;           // of what was told
  };
  std::vector<Seen> seen_;
  std::vector<Hint> hints_;
};

}  // namespace rocebox::scr
