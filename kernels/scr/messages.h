// SPDX-License-Identifier: BSD-3-Clause
// What policies tell each other, in the contents of a NIC's peer message. README.md has the bytes.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "nic_model/rate/observer.h"
#include "runtime/roce/headers.h"

namespace rocebox::scr {

struct PeerContents {
  std::uint8_t kind = 0;  ///< scr_message
  std::uint64_t value = 0, value2 = 0;
};

using MessageBytes = std::span<std::uint8_t, nic_model::kPeerMessageBytes>;
using ConstMessageBytes = std::span<const std::uint8_t, nic_model::kPeerMessageBytes>;

namespace wire {
struct Contents {
  std::uint8_t magic[4];
  std::uint8_t version, kind, zero[2];
  roce::Be64 value, value2;
  std::uint8_t rest[72];
};
static_assert(sizeof(Contents) == nic_model::kPeerMessageBytes);
inline constexpr std::uint8_t kMagic[4] = {'S', 'C', 'R', 'M'};
inline constexpr std::uint8_t kVersion = 1;
}  // namespace wire

inline void write_contents(MessageBytes to, const PeerContents& what) {
  wire::Contents contents{};
  std::memcpy(contents.magic, wire::kMagic, sizeof contents.magic);
  contents.version = wire::kVersion;
  contents.kind = what.kind;
  contents.value = what.value;
  contents.value2 = what.value2;
  std::memcpy(to.data(), &contents, sizeof contents);
}

/// Empty: nothing that a policy sends.
inline std::optional<PeerContents> read_contents(ConstMessageBytes from) {
  wire::Contents contents;
  std::memcpy(&contents, from.data(), sizeof contents);
  bool zeros = contents.zero[0] == 0 && contents.zero[1] == 0;
  for (const std::uint8_t byte : contents.rest) zeros &= byte == 0;
  if (std::memcmp(contents.magic, wire::kMagic, sizeof contents.magic) != 0 || contents.version != wire::kVersion ||
      contents.kind == 0 || !zeros)
    return {};
  return PeerContents{contents.kind, contents.value.get(), contents.value2.get()};
}

}  // namespace rocebox::scr
