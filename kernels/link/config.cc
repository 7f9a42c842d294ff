// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/link/config.h"

#include <algorithm>
#include <array>
#include <string>

#include "kernels/link/limits.h"

namespace rocebox::link {
namespace {

constexpr std::array<std::string_view, 7> kActions = {"drop",    "delay", "duplicate", "reorder",
                                                      "corrupt", "trim",  "mark"};
constexpr std::array<std::string_view, 2> kQueueFull = {"drop", "trim"};
constexpr std::array<std::string_view, 2> kIcrcs = {"kept", "repaired"};
constexpr Range<double> kShare{0, 1};
constexpr Range<Nanos> kDelays{0, kDelayMax};

}  // namespace

std::string_view action_name(Action action) {
  return action == Action::kNone ? "none" : kActions[static_cast<std::size_t>(action)];
}

void Event::fields(Fields& f) {
  f.integer("packet", packet, {0, std::int64_t{1} << 62},
            "number of the packet in its direction, from 1; 0: chosen by what follows");
  Match::fields(f);
  f.integer("psn", psn, {-1, 0xFFFFFF}, "PSN; needs `qpn`; -1: any");
  f.integer("relative_psn", relative_psn, {-1, 0xFFFFFF},
            "PSN of a request counted from the first request seen, which is 0; needs `qpn`; -1: any");
  f.integer("occurrence", occurrence, {0, std::int64_t{1} << 62}, "which of the packets so chosen; 0: each");
  f.choice("do", action, kActions, "what happens to the packet");
  f.duration("by", by, kDelays, "delay: time added; later packets overtake");
  f.integer("packets", packets, {1, kReorderByMax}, "reorder: later packets that go first");
  f.integer("copies", copies, {1, kCopiesMax}, "duplicate: how many copies");
  f.integer("offset", offset, {-1, 65535}, "corrupt: byte of the frame, from 0; -1: random");
  f.integer("mask", mask, {0, 255}, "corrupt: bits to flip in that byte; 0: one at random");
  f.choice("icrc", icrc, kIcrcs, "corrupt: kept, so that it tells, or repaired, so that nothing does");
  check_choice(f);
  check_action(f);
}

void Event::check_choice(Fields& f) const {
  constexpr std::uint16_t kRequests = kAnyRoce | kData | kReadRequest | kAtomic;
  const bool by_number = packet != 0, by_content = !any() || psn >= 0 || relative_psn >= 0;
  if (by_number && by_content)
    f.refuse("packet", "names one packet: leave it or the other conditions out");
  else if (by_number)
    f.exclude("occurrence", "cannot go with `packet`, which names one packet");
  else if (!by_content)
    f.refuse("packet", "must be given, or conditions: qpn, psn, relative_psn, opcode, kind, source, destination");
  if (psn >= 0 && relative_psn >= 0) f.refuse("relative_psn", "cannot go with `psn`: give one or the other");
  if (psn >= 0 && qpn < 0) f.refuse("psn", "needs `qpn` beside it");
  if (relative_psn < 0) return;
  if (qpn < 0) f.refuse("relative_psn", "needs `qpn` beside it");
  if (opcode >= 0 && !roce::opcode_info(static_cast<std::uint8_t>(opcode)).has(roce::kIsRequest))
    f.refuse("relative_psn", "counts requests, and `opcode` is none");
  if (!kind.empty() && !(kinds() & kRequests)) f.refuse("relative_psn", "counts requests, and `kind` names none");
}

void Event::check_action(Fields& f) const {
  if (action == Action::kNone) return;
  if (action == Action::kDelay && by == 0) f.refuse("by", "must be given: how long to delay");
  if (action != Action::kDelay && by != 0) f.refuse("by", "goes with `do: delay` only");
  if (action != Action::kReorder) f.exclude("packets", "goes with `do: reorder` only");
  if (action != Action::kDuplicate) f.exclude("copies", "goes with `do: duplicate` only");
  if (action != Action::kCorrupt && icrc != Icrc::kKept) f.refuse("icrc", "goes with `do: corrupt` only");
  if (action != Action::kCorrupt && (offset >= 0 || mask != 0))
    f.refuse(offset >= 0 ? "offset" : "mask", "goes with `do: corrupt` only");
  else if (mask != 0 && offset < 0)
    f.refuse("mask", "needs `offset` beside it");
}

void BurstLoss::fields(Fields& f) {
  f.fraction("enter", enter, kShare, "probability per packet to go from good to bad; 0: off");
  f.fraction("leave", leave, kShare, "probability per packet to go from bad to good");
  f.fraction("loss_good", loss_good, kShare, "loss in the good state");
  f.fraction("loss_bad", loss_bad, kShare, "loss in the bad state");
  if (enter > 0 && leave == 0) f.refuse("leave", "must be above 0, or the first burst never ends");
  if (enter == 0 && (leave > 0 || loss_good > 0)) f.refuse("enter", "must be above 0 when the group is used");
  if (loss_good > loss_bad) f.refuse("loss_good", "must not exceed `loss_bad`");
}

void Ecn::fields(Fields& f) {
  const Range<std::uint64_t> sizes{0, kQueueBytesMax};
  f.bytes("min", min, sizes, "Kmin: below this occupancy nothing is marked");
  f.bytes("max", max, sizes, "Kmax: above this occupancy all is marked; 0: off");
  f.fraction("probability", probability, kShare, "Pmax: marked share at max, linear from 0 at min");
  if (max == 0 && min > 0)
    f.refuse("max", "must be given when the group is used");
  else if (min > max)
    f.refuse("min", "must not exceed `max`");
  if (max == 0) f.exclude("probability", "is of no use without `max`");
}

void DirectionConfig::random_fields(Fields& f) {
  f.fraction("reorder", reorder, kShare, "share held back until later packets have gone first");
  f.integer("reorder_by", reorder_by, {1, kReorderByMax}, "how many later packets go first");
  f.duration("reorder_timeout", reorder_timeout, {kMicrosecond, kDelayMax},
             "a packet is held back no longer than this");
  f.fraction("duplicate", duplicate, kShare, "share of which a copy goes right behind");
  f.fraction("corrupt", corrupt, kShare, "share with one bit flipped");
  f.choice("corrupt_icrc", corrupt_icrc, kIcrcs, "kept, so that it tells, or repaired, so that nothing does");
  f.fraction("loss", loss, kShare, "share lost, each packet on its own");
  f.group("burst_loss", "loss in bursts (Gilbert-Elliott)", [&](Fields& g) { burst_loss.fields(g); });
  f.fraction("trim", trim, kShare, "share cut to its headers");
  f.integer("trim_dscp", trim_dscp, {-1, 63}, "DSCP of what is cut to its headers; -1: as it was");
  f.fraction("mark", mark, kShare, "share marked CE if it is ECN capable");
  f.group("match", "packets that these random faults may befall; others go unharmed",
          [&](Fields& g) { match.fields(g); });
}

void DirectionConfig::fields(Fields& f) {
  f.rate("rate", rate, {0, kRateMax}, "bits per second on the wire; 0: unlimited");
  f.bytes("overhead", overhead, {0, kOverheadMax},
          "bytes of the wire that a packet takes beyond its frame (preamble, FCS, gap)");
  f.bytes("queue", queue, {0, kQueueBytesMax}, "room before a transmitter that has a rate");
  f.choice("queue_full", queue_full, kQueueFull, "what becomes of a packet that finds no room");
  f.group("ecn", "marking by queue occupancy", [&](Fields& g) { ecn.fields(g); });
  f.duration("delay", delay, kDelays, "propagation");
  f.duration("jitter", jitter, kDelays, "uniform from 0 to this, added to the delay");
  f.boolean("jitter_reorders", jitter_reorders, "jittered packets may overtake; else order is kept");
  random_fields(f);
  f.integer("packets", packets, {kPacketsMin, kPacketsMax}, "packets on their way at once; more are dropped");
  if (f.given("events")) events.clear();  // a direction's own list replaces the common one
  f.list("events", events, kEventsMax, "explicit faults");
  f.boolean("up", up, "false: what comes is lost, as by a cut wire; what is on its way still arrives");
  check(f);
}

void DirectionConfig::check(Fields& f) const {
  if (rate != 0 && rate < kRateMin) f.refuse("rate", "must be 0 or at least 1kbps");
  if (jitter_reorders && jitter == 0) f.refuse("jitter_reorders", "needs `jitter`");
  const auto scanned =
      std::count_if(events.begin(), events.end(), [](const Event& event) { return event.is_scanned(); });
  if (static_cast<std::size_t>(scanned) > kScannedEventsMax)
    f.refuse("events", "has " + std::to_string(scanned) +
                           " entries without `packet`, `psn` and `relative_psn`; at most " +
                           std::to_string(kScannedEventsMax) + " are possible");
}

void Config::fields(Fields& f) {
  DirectionConfig common = forward;
  common.fields(f);
  forward = reverse = common;
  f.group("forward", "overrides for port 0 to port 1", [&](Fields& g) { forward.fields(g); });
  f.group("reverse", "overrides for port 1 to port 0", [&](Fields& g) { reverse.fields(g); });
  // Looked at behind both: one direction may have the rate alone.
  if (forward.rate != 0 || reverse.rate != 0) return;
  if (forward.ecn.max != 0 || reverse.ecn.max != 0) f.refuse("ecn", "needs `rate`: without one nothing waits");
  if (forward.queue_full == QueueFull::kTrim || reverse.queue_full == QueueFull::kTrim)
    f.refuse("queue_full", "needs `rate`: without one nothing waits");
}

}  // namespace rocebox::link
