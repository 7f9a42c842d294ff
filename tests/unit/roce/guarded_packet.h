// SPDX-License-Identifier: BSD-3-Clause
// A packet that ends where the readable memory ends: a read beyond its bytes is a crash.
#pragma once
#include <sys/mman.h>

#include <cstring>
#include <span>
#include <stdexcept>

#include "runtime/packet/packet.h"
#include "runtime/roce/parse.h"

namespace rocebox::test {

class GuardedPacket {
 public:
  GuardedPacket() {
    void* pages = mmap(nullptr, kRoom + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(static_cast<std::uint8_t*>(pages) + kRoom, kPage, PROT_NONE) != 0)
      throw std::runtime_error("no memory for a guarded packet");
    base_ = static_cast<std::uint8_t*>(pages);
  }
  ~GuardedPacket() { munmap(base_, kRoom + kPage); }
  GuardedPacket(const GuardedPacket&) = delete;
  GuardedPacket& operator=(const GuardedPacket&) = delete;

  /// The packet with these bytes, parsed; `wire_bytes` 0 means as many as are held.
  Packet parse(std::span<const std::uint8_t> bytes, std::uint32_t wire_bytes = 0) {
    if (bytes.size() >= kRoom) throw std::runtime_error("packet too long");
    auto* mbuf = reinterpret_cast<rte_mbuf*>(room_);
    mbuf->buf_addr = base_ + kRoom - bytes.size();
    mbuf->buf_len = mbuf->data_len = static_cast<std::uint16_t>(bytes.size());
    mbuf->pkt_len = static_cast<std::uint32_t>(bytes.size());
    if (!bytes.empty()) std::memcpy(mbuf->buf_addr, bytes.data(), bytes.size());
    Packet packet(mbuf);
    packet.meta() = {};
    packet.meta().wire_bytes = wire_bytes ? wire_bytes : static_cast<std::uint32_t>(bytes.size());
    roce::parse(packet);
    return packet;
  }

 private:
  static constexpr std::size_t kPage = 4096, kRoom = 16 * kPage;
  // The mbuf, and its metadata where rte_mbuf_to_priv looks.
  alignas(64) std::uint8_t room_[sizeof(rte_mbuf) + sizeof(PacketMeta)] = {};
  std::uint8_t* base_ = nullptr;
};

}  // namespace rocebox::test
