// SPDX-License-Identifier: BSD-3-Clause
// What a workload has to say of its collectives: operations of several hosts, each of which is made of many transfers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/kernel/kernel.h"

namespace rocebox {

/// What a workload may be beside, where it runs collectives. What hosts do to be connected is before their start.
class CollectiveTimes {
 public:
  struct Times {
    Nanos start;  ///< of the first host's first step; kNever: it has not begun
    Nanos end;    ///< when the last of its hosts had all; kNever: it is not done
  };
  /// How many there are so far, done or not.
  virtual std::size_t collectives() const = 0;
  virtual Times collective(std::size_t number) const = 0;

  /// Nanoseconds for which a transfer between two hosts of the workload lasts, alone; 0: not known.
  using Alone = std::function<double(unsigned source, unsigned destination, std::uint64_t bytes)>;
  /// How long collective `number` lasts at least, by what its transfers do; 0: not known.
  virtual double least_nanos(std::size_t /*number*/, const Alone&) const { return 0; }

 protected:
  ~CollectiveTimes() = default;
};

}  // namespace rocebox
