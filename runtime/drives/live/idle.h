// SPDX-License-Identifier: BSD-3-Clause
// Idler: what a core does in a loop that found nothing to do.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/config/live_fields.h"
#include "runtime/packet/packet.h"

namespace rocebox {

class Idler {
 public:
  Idler(config::Idle how, Nanos longest);
  ~Idler();
  Idler(const Idler&) = delete;
  Idler& operator=(const Idler&) = delete;

  /// A queue that can wake this core; false when its driver cannot.
  bool watch(std::uint16_t port, std::uint16_t queue);
  /// To be called on the core, before its first loop: pauses shall be as short as they are asked for.
  void start();

  void busy() {
    idle_loops_ = 0;
    if (armed_) disarm();
  }
  /// Nothing arrived and no timer was due; the next one is `until_deadline` away.
  void idle(Nanos until_deadline);

 private:
  void sleep(Nanos nanos);
  void disarm();
  struct Queue {
    std::uint16_t port, queue;
  };
  config::Idle how_;
  Nanos longest_;
  std::uint32_t idle_loops_ = 0;
  bool armed_ = false;
  std::vector<Queue> watched_;
};

}  // namespace rocebox
