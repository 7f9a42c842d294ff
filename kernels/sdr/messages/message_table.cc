// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/messages/message_table.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace rocebox::sdr {
namespace {

constexpr std::uint32_t kWordBits = 64;

}  // namespace

MessageTable::MessageTable(const MessageTableOptions& options) : options_(options), slots_(options.messages) {
  assert(options.layout.valid() && options.messages >= 1 && options.messages <= options.layout.messages());
  assert(options.packets_max >= 1 && options.packets_max <= options.layout.packets_max());
  assert(std::has_single_bit(options.packets_a_chunk) && std::has_single_bit(options.generations));
  table_.messages = options.messages;
  table_.words = (options.packets_max + kWordBits - 1) / kWordBits;
  table_.chunk_shift = static_cast<std::uint32_t>(std::countr_zero(options.packets_a_chunk));
  table_.chunks = chunks_of(options.packets_max);
  table_.offset_bits = options.layout.offset_bits, table_.fragment_bits = options.layout.fragment_bits;
  bitmap_.resize(std::size_t{table_.words} * options.messages);
  if (options.packets_a_chunk > kWordBits) words_left_.resize(std::size_t{table_.chunks} * options.messages);
  const auto at = [](auto& of) { return of.empty() ? 0 : reinterpret_cast<std::uintptr_t>(of.data()); };
  table_.slots = at(slots_), table_.bitmap = at(bitmap_), table_.words_left = at(words_left_);
  for (std::uint32_t i = 0; i < options.messages; i++) sdr_free(&table_, i);
}

std::uint32_t MessageTable::posted_generation(std::uint64_t number) const {
  return __atomic_load_n(&slots_[slot_of(number)].generation, __ATOMIC_RELAXED);
}

bool MessageTable::post(std::uint64_t number, std::uint32_t packets, std::uint8_t* chunks) {
  if (posted_generation(number) != SDR_FREE || packets == 0 || packets > options_.packets_max) return false;
  std::memset(chunks, 0, chunks_of(packets));
  sdr_post(&table_, slot_of(number), generation_of(number), packets, reinterpret_cast<std::uintptr_t>(chunks));
  return true;
}

bool MessageTable::complete(std::uint64_t number) {
  if (posted_generation(number) != generation_of(number)) return false;
  sdr_free(&table_, slot_of(number));
  return true;
}

Arrival MessageTable::arrive(const Completion& completion) {
  constexpr sdr_reach kHere{1, 0};
  return static_cast<Arrival>(
      sdr_arrive(&table_, kHere, completion.generation, completion.immediate, completion.bytes));
}

bool MessageTable::has_packet(std::uint64_t number, std::uint32_t packet) const {
  const std::uint32_t at = slot_of(number);
  if (posted_generation(number) != generation_of(number) || packet >= slots_[at].packets) return false;
  return __atomic_load_n(sdr_words_of(&table_, at) + packet / kWordBits, __ATOMIC_RELAXED) >> packet % kWordBits & 1;
}

bool MessageTable::user_immediate(std::uint64_t number, std::uint32_t& value) const {
  if (options_.layout.fragments() == 0 || posted_generation(number) != generation_of(number)) return false;
  return sdr_user_immediate(&table_, slot_of(number), &value);
}

std::size_t MessageTable::bytes_a_slot() const {
  return sizeof(sdr_slot) + table_.words * sizeof(bitmap_[0]) +
         words_left_.size() / options_.messages * sizeof(words_left_[0]);
}

}  // namespace rocebox::sdr
