// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/messages/message_table.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace rocebox::sdr {
namespace {

constexpr unsigned kWordBits = 64;
constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

MessageTable::MessageTable(const MessageTableOptions& options)
    : options_(options),
      chunk_shift_(static_cast<unsigned>(std::countr_zero(options.packets_a_chunk))),
      words_((options.packets_max + kWordBits - 1) / kWordBits),
      slots_(std::make_unique<Slot[]>(options.messages)),
      bitmap_(words_ * options.messages),
      words_left_(options.packets_a_chunk > kWordBits ? std::size_t{chunks_of(options.packets_max)} * options.messages
                                                      : 0) {
  assert(options.layout.valid() && options.messages >= 1 && options.messages <= options.layout.messages());
  assert(options.packets_max >= 1 && options.packets_max <= options.layout.packets_max());
  assert(std::has_single_bit(options.packets_a_chunk) && std::has_single_bit(options.generations));
  for (std::uint32_t i = 0; i < options.messages; i++) slots_[i].generation.store(kFree, kRelaxed);
}

// Packets behind the last one count as come, so that the last chunk needs no rule of its own.
void MessageTable::clear_bitmap(std::uint32_t slot, std::uint32_t packets) {
  std::atomic<std::uint64_t>* words = &bitmap_[slot * words_];
  const std::size_t used = (packets + kWordBits - 1) / kWordBits;
  for (std::size_t i = 0; i < used; i++) words[i].store(0, kRelaxed);
  if (packets % kWordBits) words[used - 1].store(~0ull << packets % kWordBits, kRelaxed);
  if (words_left_.empty()) return;
  const std::size_t words_a_chunk = options_.packets_a_chunk / kWordBits;
  for (std::uint32_t chunk = 0; chunk < chunks_of(packets); chunk++)
    words_left_[std::size_t{slot} * chunks_of(options_.packets_max) + chunk].store(
        static_cast<std::uint32_t>(std::min(words_a_chunk, used - chunk * words_a_chunk)), kRelaxed);
}

bool MessageTable::post(std::uint64_t number, std::uint32_t packets, std::uint8_t* chunks) {
  const std::uint32_t at = slot_of(number);
  Slot& slot = slots_[at];
  if (slot.generation.load(kRelaxed) != kFree || packets == 0 || packets > options_.packets_max) return false;
  slot.packets = packets;
  slot.chunks = chunks;
  slot.fragments.store(0, kRelaxed);
  slot.user.store(0, kRelaxed);
  slot.chunks_left.store(chunks_of(packets), kRelaxed);
  std::memset(chunks, 0, chunks_of(packets));
  clear_bitmap(at, packets);
  slot.generation.store(generation_of(number), std::memory_order_release);
  return true;
}

bool MessageTable::complete(std::uint64_t number) {
  Slot& slot = slots_[slot_of(number)];
  if (slot.generation.load(kRelaxed) != generation_of(number)) return false;
  slot.generation.store(kFree, std::memory_order_release);
  return true;
}

void MessageTable::take_fragment(Slot& slot, const Immediate& parts) {
  const unsigned index = parts.offset % options_.layout.fragments();
  if (slot.fragments.load(kRelaxed) >> index & 1) return;
  slot.user.fetch_or(parts.fragment << index * options_.layout.fragment_bits, kRelaxed);
  slot.fragments.fetch_or(1u << index, std::memory_order_release);
}

Arrival MessageTable::arrive(const Completion& completion) {
  const Immediate parts = options_.layout.unpack(completion.immediate);
  if (parts.message >= options_.messages) return Arrival::kNoMessage;
  Slot& slot = slots_[parts.message];
  const std::uint32_t generation = slot.generation.load(std::memory_order_acquire);
  if (generation != completion.generation) return generation == kFree ? Arrival::kNoMessage : Arrival::kLateGeneration;
  if (completion.bytes != 0 && parts.offset >= slot.packets) return Arrival::kOutside;
  if (completion.bytes == 0 && parts.offset >= options_.layout.fragments()) return Arrival::kOutside;
  if (options_.layout.fragment_bits != 0) take_fragment(slot, parts);
  return completion.bytes == 0 ? Arrival::kFragment : set(slot, parts.message, parts.offset);
}

// Whoever sets the last bit of a chunk, by an atomic operation on its word, sets the chunk's byte.
Arrival MessageTable::set(Slot& slot, std::uint32_t number, std::uint32_t packet) {
  const std::uint64_t bit = 1ull << packet % kWordBits;
  const std::uint64_t before = bitmap_[number * words_ + packet / kWordBits].fetch_or(bit, std::memory_order_acq_rel);
  if (before & bit) return Arrival::kDuplicate;
  const std::uint32_t chunk = packet >> chunk_shift_;
  if (words_left_.empty()) {
    const unsigned size = options_.packets_a_chunk;
    const std::uint64_t whole = size == kWordBits ? ~0ull : ((1ull << size) - 1) << (chunk << chunk_shift_) % kWordBits;
    if (((before | bit) & whole) != whole) return Arrival::kPacket;
  } else {
    if ((before | bit) != ~0ull) return Arrival::kPacket;
    std::atomic<std::uint32_t>& left = words_left_[std::size_t{number} * chunks_of(options_.packets_max) + chunk];
    if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return Arrival::kPacket;
  }
  std::atomic_ref(slot.chunks[chunk]).store(1, std::memory_order_release);
  return slot.chunks_left.fetch_sub(1, std::memory_order_acq_rel) == 1 ? Arrival::kMessage : Arrival::kChunk;
}

bool MessageTable::has_packet(std::uint64_t number, std::uint32_t packet) const {
  const std::uint32_t at = slot_of(number);
  if (slots_[at].generation.load(kRelaxed) != generation_of(number) || packet >= slots_[at].packets) return false;
  return bitmap_[at * words_ + packet / kWordBits].load(kRelaxed) >> packet % kWordBits & 1;
}

bool MessageTable::user_immediate(std::uint64_t number, std::uint32_t& value) const {
  const Slot& slot = slots_[slot_of(number)];
  const unsigned fragments = options_.layout.fragments();
  if (fragments == 0 || slot.generation.load(kRelaxed) != generation_of(number)) return false;
  const std::uint32_t all = fragments == 32 ? ~0u : (1u << fragments) - 1;
  if (slot.fragments.load(std::memory_order_acquire) != all) return false;
  value = slot.user.load(kRelaxed);
  return true;
}

std::size_t MessageTable::bytes_a_slot() const {
  return sizeof(Slot) + words_ * sizeof(bitmap_[0]) + words_left_.size() / options_.messages * sizeof(words_left_[0]);
}

}  // namespace rocebox::sdr
