// SPDX-License-Identifier: BSD-3-Clause
// Source: what a shard polls: a port, what other shards hand over, a mailbox, a host's doorbells.
#pragma once
#include "runtime/packet/packet.h"

namespace rocebox {

/// All calls are the shard's. One virtual call for a burst.
class Source {
 public:
  virtual ~Source() = default;
  /// Takes up what is ready, a burst at most, and has it done. Returns whether the devices got something to do.
  virtual bool poll(Nanos now) = 0;
  /// When something will be ready, as far as that is known; kNever: it is not.
  virtual Nanos next_due() const { return kNever; }
  /// A descriptor that becomes readable when something is ready while wake_on() holds; -1: nothing can wake a sleeping
  /// core for it. Of sources that have one together, wake_on() of the first does for all.
  virtual int wake_descriptor() { return -1; }
  virtual void wake_on(bool /*on*/) {}
};

}  // namespace rocebox
