// SPDX-License-Identifier: BSD-3-Clause
// Batch: what a kernel is called with, and where it writes its verdicts.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>

#include "runtime/kernel/counter.h"
#include "runtime/limits.h"
#include "runtime/packet/packet.h"

namespace rocebox {

/// Up to kBatchMax packets in arrival order, each with one verdict. The default verdict is *pass*: the other
/// side in a two-sided kernel, output 0 otherwise. While all packets pass, nothing is copied.
class Batch {
 public:
  Batch() {}  // NOLINT: leaves the arrays uninitialised, they are written before they are read

  unsigned size() const { return size_; }
  Packet& operator[](unsigned i) { return packets_[i]; }
  Packet operator[](unsigned i) const { return packets_[i]; }

  /// The output by which packets leave when the kernel says nothing.
  Port pass_port() const { return pass_; }

  /// Packet i leaves by output `out`.
  void send(unsigned i, Port out) { set(i, out); }

  /// Packet i ends here; `reason` is counted by one and named in traces.
  void drop(unsigned i, Counter& reason) {
    reason.add();
    reasons_[i] = &reason;
    set(i, kDropped);
  }

  /// The kernel owns packet i from now on. It gives it back later through Context::emit or Context::drop; until then
  /// the packet counts as held.
  PacketPtr take(unsigned i) {
    set(i, kTaken);
    return PacketPtr(packets_[i]);
  }

 private:
  friend class Pipeline;
  friend class Context;
  static constexpr Port kTaken = 0xFE, kDropped = 0xFF;
  static constexpr unsigned kFew = 16;
  /// Verdicts that are written: those behind the last packet's say pass.
  unsigned written() const { return size_ <= kFew ? kFew : kBatchMax; }

  void set(unsigned i, Port verdict) {
    assert(i < size_);
    verdicts_[i] = verdict;
    mixed_ |= verdict != pass_;
  }
  void start(Port pass) {
    pass_ = pass;
    mixed_ = false;
    // Few packets are what virtual time and replay have: a vector's worth is written then.
    if (size_ <= kFew)
      std::fill_n(verdicts_.begin(), kFew, pass);
    else
      verdicts_.fill(pass);
  }

  // In a union, since else all would be set to null for each batch of one packet.
  union {
    std::array<Packet, kBatchMax> packets_;
  };
  std::array<Port, kBatchMax> verdicts_;
  std::array<const Counter*, kBatchMax> reasons_;  // valid where the verdict is kDropped
  unsigned size_ = 0;
  Port pass_ = 0;
  bool mixed_ = false;
};

}  // namespace rocebox
