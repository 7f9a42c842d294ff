// SPDX-License-Identifier: BSD-3-Clause
// Timer: what a kernel wants to be woken for, an object of its own.
#pragma once
#include <cstdint>

#include "runtime/kernel/deadline_heap.h"

namespace rocebox {

class Context;
class Pipeline;

/// A member of a kernel, or of what a kernel keeps for a flow: Context::arm, cancel. It stays where it is and lives as
/// long as it is armed. All zero bytes are a timer that is not armed, so arrays of them may be zeroed pages.
class Timer : private Deadline {
 public:
  /// `tag` is the kernel's own, for when one function serves many timers.
  explicit Timer(std::uint64_t tag = 0) : tag_(tag) {}

  using Deadline::armed;
  /// When it fires; kNever when it is not armed.
  Nanos at() const { return armed() ? at_ : kNever; }
  std::uint64_t tag() const { return tag_; }
  void set_tag(std::uint64_t tag) { tag_ = tag; }
  /// The part of the kernel that armed it, see Context::arm; 0: the kernel itself.
  std::uint8_t part() const { return part_; }

 private:
  friend class Context;
  friend class Pipeline;
  std::uint8_t stage_ = 0, part_ = 0;
  Nanos at_ = 0;
  std::uint64_t tag_ = 0;
};

}  // namespace rocebox
