// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/backend/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/roce/psn.h"

namespace rocebox::sdr {
namespace {

constexpr std::size_t kHeadBytes = 76;
constexpr std::size_t kBytesMax = kHeadBytes + 4 * std::size_t{kRootKeysMax + kChannelsMax * kGenerationsMax};

void put(std::vector<std::uint8_t>& to, std::uint64_t value, unsigned bytes) {
  for (unsigned i = bytes; i-- > 0;) to.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

std::uint64_t get(std::span<const std::uint8_t> from, std::size_t at, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; i++) value = value << 8 | from[at + i];
  return value;
}

std::uint32_t get32(std::span<const std::uint8_t> from, std::size_t at) {
  return static_cast<std::uint32_t>(get(from, at, 4));
}

}  // namespace

std::string QueuePairOptions::mistake() const {
  const auto outside = [](std::uint64_t value, std::uint64_t most) {
    return value < 1 || value > most || !std::has_single_bit(value);
  };
  if (!layout.valid()) return "the immediate's bits must make up 32, and fragments divide 32";
  if (mtu < 64 || mtu > 4096 || !std::has_single_bit(mtu)) return "the MTU must be a power of two from 64 to 4096";
  if (outside(packets_a_chunk, layout.packets_max())) return "a chunk must be a power of two of packets";
  if (outside(slots, layout.messages()))
    return fmt::format("message IDs must be a power of two, at most {} with {} bits", layout.messages(),
                       layout.message_bits);
  if (message_bytes < mtu || message_bytes % mtu || message_bytes / mtu > layout.packets_max())
    return fmt::format("the longest message must be a multiple of the MTU, of 1 to {} packets with {} bits of offset",
                       layout.packets_max(), layout.offset_bits);
  if (channels < 1 || channels > kChannelsMax) return fmt::format("there can be 1 to {} channels", kChannelsMax);
  if (outside(generations, kGenerationsMax))
    return fmt::format("generations must be a power of two, at most {}", kGenerationsMax);
  if (outside(root_keys, kRootKeysMax))
    return fmt::format("root keys must be a power of two, at most {}", kRootKeysMax);
  if (outside(root_entries, kRootEntriesMax))
    return fmt::format("entries of a root key must be a power of two of the message IDs, at most {}", kRootEntriesMax);
  if (send_batch < 1 || send_batch > 1u << kLogSendBlocks)
    return fmt::format("a batch must have 1 to {} requests", 1u << kLogSendBlocks);
  return "";
}

std::size_t QueuePairInfo::bytes(const QueuePairOptions& o) {
  return kHeadBytes + 4 * (std::size_t{o.root_keys} + o.transports());
}

std::vector<std::uint8_t> QueuePairInfo::encode() const {
  std::vector<std::uint8_t> to(kMagic.begin(), kMagic.end());
  put(to, bytes(options), 4);
  to.insert(to.end(), address.begin(), address.end());
  put(to, options.layout.message_bits, 1);
  put(to, options.layout.offset_bits, 1);
  put(to, options.layout.fragment_bits, 1);
  put(to, options.unreliable, 1);
  for (const std::uint32_t value : {options.mtu, options.packets_a_chunk, options.slots}) put(to, value, 4);
  put(to, options.message_bytes, 8);
  for (const std::uint32_t value :
       {options.channels, options.generations, options.root_keys, options.root_entries, control_qpn, datagram_qpn, psn})
    put(to, value, 4);
  for (const std::uint32_t key : root_keys) put(to, key, 4);
  for (const std::uint32_t qpn : qpns) put(to, qpn, 4);
  return to;
}

std::optional<QueuePairInfo> QueuePairInfo::decode(std::span<const std::uint8_t> from) {
  QueuePairInfo info;
  if (from.size() < kHeadBytes || !std::equal(kMagic.begin(), kMagic.end(), from.begin())) return {};
  std::copy_n(from.begin() + 8, 16, info.address.begin());
  QueuePairOptions& o = info.options;
  o.layout = {from[24], from[25], from[26]};
  o.unreliable = from[27] != 0;
  o.mtu = get32(from, 28), o.packets_a_chunk = get32(from, 32), o.slots = get32(from, 36);
  o.message_bytes = get(from, 40, 8);
  o.channels = get32(from, 48), o.generations = get32(from, 52);
  o.root_keys = get32(from, 56), o.root_entries = get32(from, 60);
  info.control_qpn = get32(from, 64), info.datagram_qpn = get32(from, 68), info.psn = get32(from, 72);
  if (!o.mistake().empty() || info.psn > roce::kPsnMask || from.size() < bytes(o) || get32(from, 4) != bytes(o))
    return {};
  for (std::size_t i = 0; i < o.root_keys; i++) info.root_keys.push_back(get32(from, kHeadBytes + 4 * i));
  for (std::size_t i = 0; i < o.transports(); i++) info.qpns.push_back(get32(from, kHeadBytes + 4 * (o.root_keys + i)));
  return info;
}

std::string QueuePairInfo::mistake_of(const std::uint8_t* bytes, std::size_t& length) {
  if (std::memcmp(bytes, kMagic.data(), 3) != 0) return "that is no info of a queue pair";
  if (bytes[3] != kMagic[3])
    return fmt::format("the peer's info is of version {}, and this library's of version {}: both ends need the same",
                       bytes[3] >= '0' && bytes[3] <= '9' ? std::string(1, static_cast<char>(bytes[3])) : "?",
                       static_cast<char>(kMagic[3]));
  length = get32({bytes, 8}, 4);
  return length < kHeadBytes || length > kBytesMax ? "that is no info of a queue pair" : "";
}

std::string QueuePairInfo::mismatch(const QueuePairOptions& own) const {
  const auto differ = [](const char* what, std::uint64_t here, std::uint64_t there) {
    return fmt::format("{} is {} here and {} at the peer", what, here, there);
  };
  if (!(options.layout == own.layout)) return "the immediate is split otherwise at the peer";
  if (options.unreliable != own.unreliable) return "one end has UC, the other RC";
  if (options.mtu != own.mtu) return differ("the MTU", own.mtu, options.mtu);
  if (options.packets_a_chunk != own.packets_a_chunk)
    return differ("a chunk's packets", own.packets_a_chunk, options.packets_a_chunk);
  if (options.slots != own.slots) return differ("the number of message IDs", own.slots, options.slots);
  if (options.message_bytes != own.message_bytes)
    return differ("the longest message", own.message_bytes, options.message_bytes);
  if (options.channels != own.channels) return differ("the number of channels", own.channels, options.channels);
  if (options.generations != own.generations)
    return differ("the number of generations", own.generations, options.generations);
  if (options.root_keys != own.root_keys) return differ("the number of root keys", own.root_keys, options.root_keys);
  if (options.root_entries != own.root_entries)
    return differ("the factor of root entries", own.root_entries, options.root_entries);
  return "";
}

}  // namespace rocebox::sdr
