// SPDX-License-Identifier: BSD-3-Clause
// Which (r, c) a loss process needs: an analytic model of what LoWAR leaves unrepaired, and a ladder of settings.
#pragma once
#include <cstdint>

#include "kernels/lowar/loss_meter.h"
#include "kernels/lowar/repair_header.h"

namespace rocebox::lowar {

/// What adaptation aims at and may choose.
struct Aim {
  double target_loss = 1e-6;     ///< share of packets that may stay lost
  double redundancy_max = 0.25;  ///< c / r at most
  unsigned c_max = 32;
};

/// Repair packets for a data packet; 0 for uncoded.
inline double redundancy(Coding coding) { return coding.off() ? 0 : static_cast<double>(coding.c) / coding.r; }

/// The share of packets that LoWAR(r, c) does not bring back, in long messages. A loss is repaired when nothing else of
/// its share is lost: the other packets that lie c, 2c... from it, and the repair packet behind them. Seen every c
/// packets, losses are taken for a Markov chain of two states (Gilbert), and r for a multiple of c.
double residual_loss(Coding coding, const Loss& loss);

/// The setting to be used where `current` is: the same one unless it certainly leaves too much loss, or a cheaper one
/// certainly does not. Where no setting is good enough: the best, if it leaves at most half of what `current` leaves.
/// The ladder: uncoded, then r = n * c for n = 256, 128, 64... 1 and c = 1, 2, 4... 32, r at most 256; of equal
/// redundancy 1 / n the smallest c.
Coding choose(Coding current, const LossMeter& meter, const Aim& aim);

}  // namespace rocebox::lowar
