// SPDX-License-Identifier: BSD-3-Clause
// CodedPart: the bytes of a part that is erasure coded: parity in memory of its own, and a short last chunk, which the
// code takes as if zeros followed it.
#pragma once
#include <vector>

#include "kernels/sdr/reliability/parts.h"

namespace rocebox::sdr {

class CodedPart {
 public:
  /// Of the part whose data begin at `data`. Allocates where a part was never so long.
  void start(const PartShape& shape, std::uint8_t* data);
  std::uint8_t* parity() { return parity_.data(); }
  std::size_t parity_bytes() const { return parity_.size(); }
  void encode();
  /// Recovers what is missing of a submessage; `present` is CodingReceiver's. False: it cannot be.
  bool recover(std::uint32_t submessage, std::span<const std::uint8_t> present);

 private:
  ErasureCodec& codec_of(std::uint32_t submessage);
  void point_at(std::uint32_t submessage);

  PartShape shape_;
  std::uint8_t* data_ = nullptr;
  std::vector<std::uint8_t> parity_, last_;  // last_: the last data chunk with zeros behind it
  std::vector<std::uint8_t*> chunks_;        // of a submessage, data first
  std::vector<std::unique_ptr<ErasureCodec>> codecs_;
};

}  // namespace rocebox::sdr
