// SPDX-License-Identifier: BSD-3-Clause
// What is drawn for networks, and between which bounds.
#pragma once
#include "runtime/kernel/kernel.h"
#include "tests/unit/contracts/random_fields.h"

namespace rocebox::swarm {

using Limits = test::RandomFields::Limits;

// What makes a run long shows nothing more: sizes are those of some packets, and slow links and long timers only make
// time pass. Addresses are the network's, and groups are of the family that its hosts have.
inline const std::vector<std::int64_t> kWindows = {1, 2, 5, 16, 64, 512};
inline const std::vector<std::int64_t> kRetransmissionTimeouts = {100'000, kMillisecond, 4 * kMillisecond,
                                                                  100 * kMillisecond};
inline const Limits kNic{.one_in = 4,
                         .rate_min = 100'000'000,
                         .duration_max = 10 * kMillisecond,
                         .kept = {"mac", "address", "address6", "prefix_bits", "gateway", "neighbors", "rate",
                                  "queue_pairs", "congestion_control"},
                         .values = {{"window", kWindows},
                                    {"ack_every", {1, 2, 7, 16, 64}},
                                    {"retransmission_timeout", kRetransmissionTimeouts},
                                    {"cm_response_timeout", {12, 16, 20}}}};
inline const Limits kLink{.one_in = 8,
                          .rate_min = 10'000'000,
                          .duration_max = 10 * kMillisecond,
                          .integer_max = 1 << 16,
                          .values = {{"copies", {1, 2, 3}}}};
inline const Limits kGateway{.one_in = 4, .duration_max = 100 * kMillisecond};
inline const Limits kWorkload{.one_in = 3,
                              .rate_min = 100'000'000,
                              .duration_max = kMillisecond,
                              .integer_max = 16,
                              .bytes_max = 65536,
                              .items_one_in = 1,
                              .kept = {"group"},
                              .values = {{"mtu", {256, 512, 1024, 2048, 4096}},
                                         {"window", kWindows},
                                         {"retransmission_timeout", kRetransmissionTimeouts},
                                         {"timeout", {4, 8, 12, 14, 16}},
                                         {"chunk", {1000, 4096, 5001, 1 << 30}},
                                         {"source", {0, 1, 2, 3}},
                                         {"destination", {0, 1, 2, 3}},
                                         {"groups", {1, 2}}}};

}  // namespace rocebox::swarm
