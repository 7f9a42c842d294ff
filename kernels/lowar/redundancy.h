// SPDX-License-Identifier: BSD-3-Clause
// Which (r, c) a loss process needs: an analytic model of what LoWAR leaves unrepaired, and a ladder of settings.
#pragma once
#include "kernels/lowar/loss_meter.h"
#include "kernels/lowar/message_meter.h"
#include "kernels/lowar/repair_header.h"

namespace rocebox::lowar {

/// What adaptation aims at and may choose.
struct Aim {
  double target_loss = 1e-6;     ///< share of packets that may stay lost
  double redundancy_max = 0.25;  ///< repair packets for a data packet at most
  unsigned c_max = 32;
};

/// The share of packets that LoWAR(r, c) does not bring back. A loss is repaired when nothing else of its share is
/// lost: the other packets that lie c, 2c... from it, and the repair packet behind them; where the message ends within
/// the block, that comes sooner. Seen every c packets, losses are taken for a Markov chain of two states (Gilbert), and
/// r for a multiple of c. Without messages: of long ones.
double residual_loss(Coding coding, const Loss& loss, const MessageMeter& messages = {});

/// The setting to be used where `current` is: the same one unless it costs too much, certainly leaves too much loss, or
/// a cheaper one certainly does not. What it costs is what it costs with these messages. Where no setting that may be
/// paid is good enough: the best of these, if it leaves at most half of what `current` leaves, or that costs too much.
/// The ladder: uncoded, then c = 1, 2, 4... 32 and r = c, 2c... 256; of equal cost the smallest c, then the smallest r.
Coding choose(Coding current, const LossMeter& meter, const MessageMeter& messages, const Aim& aim);

}  // namespace rocebox::lowar
