// SPDX-License-Identifier: BSD-3-Clause
// SplitMix64 (Steele, Lea, Flood 2014): random numbers of a state that steps, or by their number.
#pragma once
#include <cstdint>

namespace rocebox::splitmix64 {

inline constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ull;

/// The number of a state: number n of seed s is of(s + n * kStep).
constexpr std::uint64_t of(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebull;
  return state ^ (state >> 31);
}

/// Steps the state, and gives its number.
constexpr std::uint64_t next(std::uint64_t& state) { return of(state += kStep); }

}  // namespace rocebox::splitmix64
