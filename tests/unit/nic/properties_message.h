// SPDX-License-Identifier: BSD-3-Clause
// Message: a random work request, and what memory must be like once it is done.
#pragma once
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace rocebox::test::properties {

inline constexpr unsigned kMessages = 20;
inline constexpr std::size_t kSlot = 8192, kArea = kMessages * kSlot;  // of one message, and of all of them
// A side's memory: what it sends and others read; what comes; what its READs and atomics bring; what atomics change.
inline constexpr std::size_t kOwn = 0, kTheirs = kArea, kAnswers = 2 * kArea, kAdded = 3 * kArea, kSwapped = kAdded + 8,
                             kBytes = kAdded + 16;
inline constexpr std::uint8_t kUntouched = 0xEE;
inline constexpr std::uint32_t kInlineMax = 64;

/// A part of a slot.
struct Part {
  std::size_t offset, bytes;
};

struct Message {
  ibv_wr_opcode opcode;  // IBV_WR_LOCAL_INV: nothing is sent, a window is bound and unbound by turns
  std::uint32_t bytes = 0;
  bool is_fenced = false, is_inline = false;
  std::size_t gathered_at = 0;   // of `bytes`: it is gathered from there on, and then from the slot's beginning
  std::size_t scattered_at = 0;  // of the slot: it is put there first, and then from the slot's beginning on
  bool is_atomic() const { return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP; }
  bool is_send() const {
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV;
  }
  bool uses_receive() const { return is_send() || opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }
  bool is_answered() const { return is_atomic() || opcode == IBV_WR_RDMA_READ; }
  bool has_immediate() const { return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }

  void cut_to(std::uint32_t most) {
    bytes = std::min(bytes, most);
    if (gathered_at >= bytes) gathered_at = 0;
  }

  /// The pieces of the sender's slot that it is made of.
  std::vector<Part> gathered() const {
    if (gathered_at == 0) return {{0, bytes}};
    return {{gathered_at, bytes - gathered_at}, {0, gathered_at}};
  }
  /// The pieces of a slot that take `room` bytes: of the receive request, or of the answer.
  std::vector<Part> scattered(std::size_t room) const {
    const std::size_t first = std::min(room, kSlot - scattered_at);
    if (first == room) return {{scattered_at, room}};
    return {{scattered_at, first}, {0, room - first}};
  }
  /// Where it lies at last, in the slot of who receives it or asked for it.
  std::vector<Part> lies() const {
    const bool is_scattered = is_send() || opcode == IBV_WR_RDMA_READ;
    return is_scattered ? scattered(bytes) : std::vector<Part>{{0, bytes}};
  }
  /// Its bytes, out of the slot of who has them.
  std::vector<std::uint8_t> content(std::span<const std::uint8_t> from) const {
    std::vector<std::uint8_t> all;
    for (const Part& part : opcode == IBV_WR_RDMA_READ ? std::vector<Part>{{0, bytes}} : gathered())
      all.insert(all.end(), from.begin() + static_cast<std::ptrdiff_t>(part.offset),
                 from.begin() + static_cast<std::ptrdiff_t>(part.offset + part.bytes));
    return all;
  }
  /// The slot that it has come to, whole.
  std::vector<std::uint8_t> image(std::span<const std::uint8_t> from) const {
    const std::vector<std::uint8_t> sent = content(from);
    std::vector<std::uint8_t> slot(kSlot, kUntouched);
    std::size_t done = 0;
    for (const Part& part : lies()) {
      if (part.bytes) std::memcpy(&slot[part.offset], &sent[done], part.bytes);
      done += part.bytes;
    }
    return slot;
  }
};

/// A random one, of one of `opcodes`.
inline Message draw_message(std::span<const ibv_wr_opcode> opcodes, std::mt19937_64& random) {
  Message one{opcodes[random() % opcodes.size()]};
  one.is_fenced = random() % 8 == 0;
  one.bytes = static_cast<std::uint32_t>(random() % (random() % 3 ? 3000 : kSlot));
  if (one.opcode == IBV_WR_LOCAL_INV) one.bytes = 0;
  if (one.is_atomic()) one.bytes = 8;
  const bool is_sent = !one.is_answered() && one.opcode != IBV_WR_LOCAL_INV;
  if (is_sent && random() % 6 == 0) {
    one.is_inline = true;
    one.bytes = static_cast<std::uint32_t>(random() % (kInlineMax + 1));
  }
  if (is_sent && one.bytes > 1 && random() % 3 == 0) one.gathered_at = 1 + random() % (one.bytes - 1);
  if (random() % 3 == 0) one.scattered_at = 1 + random() % (kSlot - 1);
  return one;
}

}  // namespace rocebox::test::properties
