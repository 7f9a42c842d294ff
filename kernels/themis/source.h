// SPDX-License-Identifier: BSD-3-Clause
// Source: the registers and the logic of Themis-S (4.1, 4.4), in the ingress control of the sender's ToR. Each packet
// touches an array once, in the order of the stages.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "kernels/themis/limits.h"
#include "kernels/themis/modulo.h"
#include "kernels/themis/psn_cell.h"
#include "switch_model/program.h"

namespace rocebox::themis {

using switch_model::At;
using switch_model::Gress;
using switch_model::Layout;
using switch_model::PacketState;
using switch_model::Pass;
using switch_model::RegisterArray;

/// Why a packet leaves the path that its PSN says; several may hold.
enum Reroute : std::uint32_t {
  kReroutedNacked = 1,   ///< a NACK asked for it: elsewhere
  kReroutedAgain = 2,    ///< sent again without a NACK: any path
  kReroutedAvoided = 4,  ///< its path is to be avoided
};
/// What became of the path of one packet.
struct PathChoice {
  std::uint32_t path;
  std::uint32_t rerouted = 0;  ///< bits of Reroute
};

class Source {
 public:
  struct Config {
    std::uint32_t slots;      ///< QPs of one pipe
    std::uint32_t paths_max;  ///< sizes the arrays
    std::uint32_t paths;      ///< N at the start
    std::uint32_t avoidance_window;
    bool reroute_timeouts = true;
    bool rerouting = true;  ///< of what a NACK asks for; without it such a packet keeps its path
  };
  Source(const Config& config, Layout& layout);

  /// The path of one data packet: equation 1 with `base` below N, and the exceptions of 4.4. `draw()` gives a random
  /// number; it is called for a packet that leaves its path, once.
  template <class Access, class Draw>
  PathChoice data(Access& access, const PacketState& p, std::uint32_t slot, std::uint32_t psn, std::uint32_t base,
                  Draw&& draw) {
    // Once: a register might be what they are read from, for all that the compiler knows.
    const std::uint32_t paths = modulo_.count(), psn_class = modulo_(psn);
    std::uint32_t path = psn_class + base;
    if (path >= paths) path -= paths;
    const PsnCell nack = access.update(p, recved_nack_psn_, slot, [psn](PsnCell& cell) {
      const PsnCell before = cell;
      if (cell.is(psn)) cell = PsnCell::of(psn, true);
      return before;
    });
    const bool nacked = nack.is(psn), elsewhere = rerouting_ && nacked && (!nack.flag() || !reroute_timeouts_);
    const PsnCell highest = access.update(p, highest_psn_, slot, [psn, nacked](PsnCell& cell) {
      const PsnCell before = cell;
      cell = PsnCell::of(is_new(cell, psn) ? psn : cell.psn(), nacked);
      return before;
    });
    // With the packet that a NACK asks for, an RNIC sends the one that it sent last once more (2.3): that one keeps its
    // path, so that the order on it still proves losses.
    const bool repeated = highest.is(psn) && highest.flag() && !nacked;
    const bool again = reroute_timeouts_ && !is_new(highest, psn) && !repeated;
    const bool avoided = access.update(p, path_adaptive_count_, cell(slot, psn_class), [](std::uint32_t& count) {
      if (count == 0) return false;
      count--;
      return true;
    });
    if (!(elsewhere | avoided | again)) [[likely]]
      return {path};
    PathChoice choice{path, (elsewhere ? kReroutedNacked : 0u) |
                                (again && !elsewhere && !avoided ? kReroutedAgain : 0u) |
                                (avoided ? kReroutedAvoided : 0u)};
    const std::uint64_t random = draw();
    if ((elsewhere || avoided) && paths > 1)
      choice.path = wrapped(path + 1 + static_cast<std::uint32_t>(random % (paths - 1)));
    else if (again)
      choice.path = wrapped(path + modulo_(static_cast<std::uint32_t>(random)));
    return choice;
  }

  /// A NACK on its way to the sender; `avoid`: it is a Path Avoidance Signal. False when that is not believed: it asks
  /// for what was not sent lately.
  template <class Access>
  bool nack(Access& access, const PacketState& p, std::uint32_t slot, std::uint32_t epsn, bool avoid) {
    access.write(p, recved_nack_psn_, slot, PsnCell::of(epsn));
    if (!avoid) return true;
    const PsnCell highest = access.read(p, highest_psn_, slot);
    if (highest.valid() && (is_far(highest, epsn) || roce::psn_after(epsn, highest.psn()))) return false;
    access.write(p, path_adaptive_count_, cell(slot, modulo_(epsn)), avoidance_window_);
    return true;
  }

  template <class Access>
  void prefetch(Access& access, const PacketState& p, std::uint32_t slot, std::uint32_t psn) const {
    access.prefetch(p, recved_nack_psn_, slot);
    access.prefetch(p, highest_psn_, slot);
    access.prefetch(p, path_adaptive_count_, cell(slot, modulo_(psn)));
  }

  /// The control plane: all registers of a slot as for a new QP.
  void clear(unsigned pipe, std::uint32_t slot);
  /// N from now on, 1 to paths_max. What the avoidance counters say belongs to the old paths: harmless, they run out.
  void change(std::uint32_t paths, std::uint32_t avoidance_window, bool reroute_timeouts) {
    modulo_ = Modulo(paths);
    avoidance_window_ = avoidance_window;
    reroute_timeouts_ = reroute_timeouts;
  }
  std::uint32_t paths() const { return modulo_.count(); }

 private:
  // Whether `psn` is ahead of all that were sent, or far from them.
  static bool is_new(PsnCell highest, std::uint32_t psn) {
    const std::int32_t ahead = roce::psn_distance(psn, highest.psn());
    return !highest.valid() || ahead > 0 || ahead < -std::int32_t{kWindowMax};
  }
  // Beyond the window of any sender: another connection, or an error; not what was sent before.
  static bool is_far(PsnCell cell, std::uint32_t psn) {
    return cell.valid() && std::abs(roce::psn_distance(psn, cell.psn())) > kWindowMax;
  }
  std::uint64_t cell(std::uint32_t slot, std::uint32_t psn_class) const {
    return std::uint64_t{slot} * paths_max_ + psn_class;
  }
  std::uint32_t wrapped(std::uint32_t path) const { return path >= modulo_.count() ? path - modulo_.count() : path; }

  Modulo modulo_;
  std::uint32_t paths_max_, avoidance_window_;
  bool reroute_timeouts_, rerouting_;
  RegisterArray<PsnCell> recved_nack_psn_;            // flag: the packet has been sent again
  RegisterArray<PsnCell> highest_psn_;                // flag: the packet before was the one that a NACK asked for
  RegisterArray<std::uint32_t> path_adaptive_count_;  // by PSN mod N, which is the path but for the base
};

}  // namespace rocebox::themis
