// SPDX-License-Identifier: BSD-3-Clause
// Every bound of Themis, each with its reason.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rocebox::themis {

/// Paths of a QP: what a ToR of 160 ports can have, and twice what the paper sizes its tables for.
inline constexpr std::int64_t kPathsMax = 256;

/// The sender's largest window, in packets: far below half a round of PSNs, so that serial comparison holds.
inline constexpr std::int64_t kWindowMax = 1 << 16;

/// QPs with state of each role: with the reference's 128 paths their path arrays reach the model's 2^24 cells at 2^17.
inline constexpr std::int64_t kQpsMax = 1 << 17;

/// Packets outside every window, none inside between them: the QP has begun anew elsewhere.
inline constexpr std::uint8_t kFarPacketsMax = 16;

/// PSNs that one READ request is taken to need at most: the doubt that it raises must lie ahead modulo 2^24.
inline constexpr std::uint32_t kReadPsnsMax = 1 << 22;

/// Where the controls stand, in stages of the program: what a later one does depends on what an earlier one gave. The
/// layout puts them behind the programs before, and makes room for arrays that take several.
struct IngressStage {
  static constexpr unsigned kQp = 0, kNack = 1, kHighest = 2, kAvoid = 3, kPathMap = 4, kHash = 5, kNextHop = 6;
};
struct EgressStage {
  static constexpr unsigned kQp = 0, kHighest = 1, kBase = 2, kDoubt = 3, kHalves = 4, kBitmap = 5, kPaths = 6,
                            kStash = 7, kStashValid = 8, kStashRest = 9;
};

/// Flows of one direction between two hosts that learning chooses from, those that sent last: twice the paper's 512 QPs
/// of a NIC, a few microseconds of work for an ACK that fits none of so many.
inline constexpr std::uint32_t kCandidatesMax = 1024;

/// Configured connections that trial packets are made for, to judge a program in strict mode.
inline constexpr std::size_t kStimuliMax = 4;

/// Changes of tables that one instant may ask the control plane for; more are asked for again by later packets.
inline constexpr std::size_t kChangesMax = 1024;

/// Parts of the resource report: what the paper's tables list, and what is ours.
inline constexpr const char *kPartSource = "Themis-S (table 3)", *kPartPathMap = "PathMap",
                            *kPartDestination = "Themis-D (table 4)", *kPartOurs = "beyond the paper";

}  // namespace rocebox::themis
