// SPDX-License-Identifier: BSD-3-Clause
// Frames of RoCEv2, made and then bent.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "tests/unit/harness.h"

namespace rocebox::roce {

using Bytes = std::vector<std::uint8_t>;
inline constexpr std::uint32_t kNoTags = 14;  // where IP begins in a frame without tags

inline void insert(Bytes& frame, std::size_t at, const Bytes& bytes) {
  frame.insert(frame.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(), bytes.end());
}
inline void put16(Bytes& frame, std::size_t at, unsigned value) {
  frame.at(at) = static_cast<std::uint8_t>(value >> 8);
  frame.at(at + 1) = static_cast<std::uint8_t>(value);
}
inline unsigned get16(const Bytes& frame, std::size_t at) { return frame.at(at) * 256u + frame.at(at + 1); }

inline Bytes frame(std::uint8_t ip_version, std::uint8_t opcode = IBV_OPCODE_RC_RDMA_WRITE_ONLY,
                   std::size_t payload = 8) {
  static const Bytes kPayload(4096, 0x5A);
  PacketSpec spec;
  spec.underlay.ip_version = ip_version;
  spec.opcode = opcode;
  spec.payload = std::span(kPayload).first(payload);
  return test::frame(spec);
}
// An IPv6 frame with extension headers between the IP header and UDP: (type, bytes) each, bytes[0] is filled in.
inline Bytes with_extensions(std::vector<std::pair<std::uint8_t, Bytes>> extensions) {
  Bytes bytes = frame(6), between;
  for (std::size_t i = 0; i < extensions.size(); i++) {
    extensions[i].second[0] = i + 1 < extensions.size() ? extensions[i + 1].first : 17;
    insert(between, between.size(), extensions[i].second);
  }
  if (!extensions.empty()) bytes[kNoTags + 6] = extensions[0].first;
  insert(bytes, kNoTags + 40, between);
  put16(bytes, kNoTags + 4, get16(bytes, kNoTags + 4) + static_cast<unsigned>(between.size()));
  return bytes;
}
inline Bytes extension(std::size_t bytes, std::uint8_t length_field) {
  Bytes result(bytes);
  result[1] = length_field;
  return result;
}

inline Bytes changed(Bytes bytes, const std::function<void(Bytes&)>& change) {
  change(bytes);
  return bytes;
}
inline constexpr std::uint32_t kUdp4 = kNoTags + 20, kBth4 = kUdp4 + 8, kUdp6 = kNoTags + 40;

}  // namespace rocebox::roce
