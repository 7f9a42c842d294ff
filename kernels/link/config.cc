// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/link/config.h"

#include <array>

#include "kernels/link/held_back.h"
#include "kernels/link/rate_queue.h"

namespace rocebox::link {
namespace {

constexpr std::array<std::string_view, 7> kActions = {"drop",    "delay", "duplicate", "reorder",
                                                      "corrupt", "trim",  "mark"};
constexpr std::array<std::string_view, 2> kQueueFull = {"drop", "trim"};
constexpr Range<double> kShare{0, 1};
constexpr Range<Nanos> kDelays{0, kDelayMax};

}  // namespace

std::string_view action_name(Action action) { return kActions[static_cast<std::size_t>(action)]; }

void Event::fields(Fields& f) {
  f.integer("packet", packet, {0, std::int64_t{1} << 62},
            "number of the packet in its direction, from 1; 0: chosen by qpn and psn");
  f.integer("qpn", qpn, {-1, 0xFFFFFF}, "destination QP; -1: chosen by packet");
  f.integer("psn", psn, {-1, 0xFFFFFF}, "PSN; -1: chosen by packet");
  f.integer("occurrence", occurrence, {0, std::int64_t{1} << 62},
            "which time qpn and psn (and opcode) pass together; 0: every time");
  f.integer("opcode", opcode, {-1, 255}, "BTH opcode that the packet must have too; -1: any");
  f.choice("do", action, kActions, "what happens to the packet");
  f.duration("by", by, kDelays, "delay: time added; later packets overtake");
  f.integer("packets", packets, {1, kReorderByMax}, "reorder: later packets that go first");
  f.integer("copies", copies, {1, kCopiesMax}, "duplicate: how many copies");
  f.integer("offset", offset, {-1, 65535}, "corrupt: byte of the frame, from 0; -1: random");
  f.integer("mask", mask, {0, 255}, "corrupt: bits to flip in that byte; 0: one at random");
  check(f);
}

void Event::check(Fields& f) const {
  const bool by_number = packet != 0, by_psn = qpn >= 0 || psn >= 0;
  if (by_number && by_psn)
    f.refuse("packet", "cannot go with `qpn` and `psn`: give one or the other");
  else if (qpn >= 0 && psn < 0)
    f.refuse("qpn", "needs `psn` beside it");
  else if (psn >= 0 && qpn < 0)
    f.refuse("psn", "needs `qpn` beside it");
  else if (!by_number && !by_psn)
    f.refuse("packet", "must be given, or `qpn` and `psn`");
  if (by_number && f.given("occurrence")) f.refuse("occurrence", "goes with `qpn` and `psn` only");
  if (by_number && opcode >= 0) f.refuse("opcode", "goes with `qpn` and `psn` only");
  if (action == Action::kDelay && by == 0) f.refuse("by", "must be given: how long to delay");
  if (action != Action::kDelay && by != 0) f.refuse("by", "goes with `do: delay` only");
  if (action != Action::kReorder && f.given("packets")) f.refuse("packets", "goes with `do: reorder` only");
  if (action != Action::kDuplicate && f.given("copies")) f.refuse("copies", "goes with `do: duplicate` only");
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
  const Range<std::uint64_t> sizes{0, RateQueue::kBytesMax};
  f.bytes("min", min, sizes, "Kmin: below this occupancy nothing is marked");
  f.bytes("max", max, sizes, "Kmax: above this occupancy all is marked; 0: off");
  f.fraction("probability", probability, kShare, "Pmax: marked share at max, linear from 0 at min");
  if (max == 0 && (min > 0 || f.given("probability")))
    f.refuse("max", "must be given when the group is used");
  else if (min > max)
    f.refuse("min", "must not exceed `max`");
}

void DirectionConfig::random_fields(Fields& f) {
  f.fraction("reorder", reorder, kShare, "share held back until later packets have gone first");
  f.integer("reorder_by", reorder_by, {1, kReorderByMax}, "how many later packets go first");
  f.duration("reorder_timeout", reorder_timeout, {kMicrosecond, kDelayMax},
             "a packet is held back no longer than this");
  f.fraction("duplicate", duplicate, kShare, "share of which a copy goes right behind");
  f.fraction("corrupt", corrupt, kShare, "share with one bit flipped");
  f.fraction("loss", loss, kShare, "share lost, each packet on its own");
  f.group("burst_loss", "loss in bursts (Gilbert-Elliott)", [&](Fields& g) { burst_loss.fields(g); });
  f.fraction("trim", trim, kShare, "share cut to its headers");
  f.integer("trim_dscp", trim_dscp, {-1, 63}, "DSCP of what is cut to its headers; -1: as it was");
  f.fraction("mark", mark, kShare, "share marked CE if it is ECN capable");
}

void DirectionConfig::fields(Fields& f) {
  f.rate("rate", rate, {0, RateQueue::kRateMax}, "bits per second on the wire; 0: unlimited");
  f.bytes("overhead", overhead, {0, 256},
          "bytes of the wire that a packet takes beyond its frame (preamble, FCS, gap)");
  f.bytes("queue", queue, {0, RateQueue::kBytesMax}, "room before a transmitter that has a rate");
  f.choice("queue_full", queue_full, kQueueFull, "what becomes of a packet that finds no room");
  f.group("ecn", "marking by queue occupancy", [&](Fields& g) { ecn.fields(g); });
  f.duration("delay", delay, kDelays, "propagation");
  f.duration("jitter", jitter, kDelays, "uniform from 0 to this, added to the delay");
  f.boolean("jitter_reorders", jitter_reorders, "jittered packets may overtake; else order is kept");
  random_fields(f);
  f.integer("packets", packets, {64, 1 << 20}, "packets on their way at once; more are dropped");
  if (f.given("events")) events.clear();  // a direction's own list replaces the common one
  f.list("events", events, kEventsMax, "explicit faults");
  check(f);
}

void DirectionConfig::check(Fields& f) const {
  if (rate != 0 && rate < RateQueue::kRateMin) f.refuse("rate", "must be 0 or at least 1kbps");
  if (jitter_reorders && jitter == 0) f.refuse("jitter_reorders", "needs `jitter`");
}

void Config::fields(Fields& f) {
  DirectionConfig common = forward;
  common.fields(f);
  forward = reverse = common;
  f.group("forward", "overrides for port 0 to port 1", [&](Fields& g) { forward.fields(g); });
  f.group("reverse", "overrides for port 1 to port 0", [&](Fields& g) { reverse.fields(g); });
}

}  // namespace rocebox::link
