// SPDX-License-Identifier: BSD-3-Clause
// Idler: what a core does in a loop that found nothing to do.
#pragma once
#include <poll.h>

#include <cstdint>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/drives/live/source.h"

namespace rocebox {

class Idler {
 public:
  Idler(config::Idle how, Nanos longest) : how_(how), longest_(longest) {}

  /// A source that shall wake this core. One that cannot makes it pause instead of sleep.
  void watch(Source& source);
  /// To be called on the core, before its first loop: pauses shall be as short as they are asked for.
  void start();

  void busy() {
    idle_loops_ = 0;
    if (armed_) arm(false);
  }
  /// Nothing arrived and no timer was due; the next one is `until_deadline` away.
  void idle(Nanos until_deadline);

 private:
  void arm(bool on);
  config::Idle how_;
  Nanos longest_;
  std::uint32_t idle_loops_ = 0;
  bool armed_ = false, deaf_ = false;
  std::vector<Source*> watched_;
  std::vector<pollfd> descriptors_;
};

}  // namespace rocebox
