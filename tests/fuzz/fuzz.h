// SPDX-License-Identifier: BSD-3-Clause
// What the fuzz targets share.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "runtime/packet/packet.h"

namespace rocebox::fuzz {

/// Ends the process, and so makes a finding, when what must hold does not.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

/// The input, byte by byte; zeros behind its end.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint8_t take() { return at_ < bytes_.size() ? bytes_[at_++] : 0; }
  unsigned below(unsigned count) { return take() % count; }
  template <class T, std::size_t N>
  T one_of(const T (&values)[N]) {
    return values[below(N)];
  }
  bool ended() const { return at_ >= bytes_.size(); }
  std::size_t at() const { return at_; }
  void go_to(std::size_t at) { at_ = at; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

/// A packet whose bytes lie in a heap block of exactly their size: AddressSanitizer sees any access beyond them.
class ExactPacket {
 public:
  ExactPacket(std::span<const std::uint8_t> bytes, std::uint32_t wire_bytes) : bytes_(new std::uint8_t[bytes.size()]) {
    if (!bytes.empty()) std::memcpy(bytes_.get(), bytes.data(), bytes.size());
    auto* mbuf = reinterpret_cast<rte_mbuf*>(room_);
    mbuf->buf_addr = bytes_.get();
    mbuf->buf_len = mbuf->data_len = static_cast<std::uint16_t>(bytes.size());
    mbuf->pkt_len = static_cast<std::uint32_t>(bytes.size());
    packet().meta() = {};
    packet().meta().wire_bytes = wire_bytes;
  }
  Packet packet() { return Packet(reinterpret_cast<rte_mbuf*>(room_)); }

 private:
  // The mbuf, and its metadata where rte_mbuf_to_priv looks.
  alignas(64) std::uint8_t room_[sizeof(rte_mbuf) + sizeof(PacketMeta)] = {};
  std::unique_ptr<std::uint8_t[]> bytes_;
};

}  // namespace rocebox::fuzz
