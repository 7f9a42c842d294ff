// SPDX-License-Identifier: BSD-3-Clause
// The remainder by a number that is fixed for long, without a division (Lemire, Kaser, Kurz: "Faster remainder by
// direct computation", 2019). A switch has a table of the PSN's parts for it.
#pragma once
#include <cstdint>

namespace rocebox::themis {

class Modulo {
 public:
  /// `n` is at least 1.
  explicit Modulo(std::uint32_t n) : n_(n), inverse_(UINT64_MAX / n + 1) {}

  std::uint32_t count() const { return n_; }
  /// value mod n.
  std::uint32_t operator()(std::uint32_t value) const {
    __extension__ using Wide = unsigned __int128;
    if (n_ == 1) return 0;
    return static_cast<std::uint32_t>((Wide{inverse_ * value} * n_) >> 64);
  }

 private:
  std::uint32_t n_;
  std::uint64_t inverse_;  // 0 when n is 1
};

}  // namespace rocebox::themis
