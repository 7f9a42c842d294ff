// SPDX-License-Identifier: BSD-3-Clause
// Sequencer: who broadcasts when (IV-A, Appendix A): M chains of R = P / M ranks each, one behind the other; in step i
// ranks i, R + i, 2R + i, ... broadcast. Ranks that follow each other are in one chain, so that hosts listed by rack
// give chains of racks.
#pragma once
#include <cstdint>
#include <optional>

namespace rocebox::allgather {

class Sequencer {
 public:
  /// `chains` from 1 to `ranks`. Where it does not divide `ranks` R is rounded up, and the last chain is shorter.
  Sequencer(unsigned ranks, unsigned chains) : ranks_(ranks), length_((ranks + chains - 1) / chains) {}

  unsigned steps() const { return length_; }  ///< R
  /// Chains that there are: fewer than were asked for when so many of R ranks are more than all ranks.
  unsigned chains() const { return (ranks_ + length_ - 1) / length_; }
  unsigned chain_of(unsigned rank) const { return rank / length_; }
  unsigned step_of(unsigned rank) const { return rank % length_; }
  bool is_first(unsigned rank) const { return step_of(rank) == 0; }
  /// Whom `rank` activates when it has sent.
  std::optional<unsigned> next(unsigned rank) const {
    if (rank + 1 == ranks_ || is_first(rank + 1)) return std::nullopt;
    return rank + 1;
  }

 private:
  unsigned ranks_, length_;
};

/// The cutoff timer (III-C): N / B + alpha, N all bytes of the receive buffer, B bits per second of the link.
constexpr std::int64_t cutoff_nanos(std::uint64_t receive_bytes, std::uint64_t bits_per_second, std::int64_t alpha) {
  __extension__ using Wide = unsigned __int128;
  const auto bits = static_cast<Wide>(receive_bytes) * 8 * 1'000'000'000;
  const auto nanos = bits_per_second ? (bits + bits_per_second - 1) / bits_per_second : 0;
  return static_cast<std::int64_t>(nanos) + alpha;
}

}  // namespace rocebox::allgather
