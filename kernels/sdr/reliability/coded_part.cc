// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/reliability/coded_part.h"

#include <cstring>

namespace rocebox::sdr {

void CodedPart::start(const PartShape& shape, std::uint8_t* data) {
  shape_ = shape;
  data_ = data;
  parity_.resize(shape.submessages.parity_chunks() * shape.chunk_bytes);
  last_.assign(shape.chunk_bytes, 0);
  const std::uint64_t begin = (shape.chunks() - 1) * shape.chunk_bytes;
  std::memcpy(last_.data(), data + begin, shape.bytes - begin);
}

// The last submessage may have a shape of its own.
ErasureCodec& CodedPart::codec_of(std::uint32_t submessage) {
  const CodeShape wanted{shape_.submessages.shape.kind, shape_.submessages.data(submessage),
                         shape_.submessages.parity(submessage)};
  for (const auto& one : codecs_)
    if (one->shape().data == wanted.data && one->shape().parity == wanted.parity) return *one;
  if (codecs_.size() > 1) codecs_.pop_back();  // the full shape is the first, and stays
  codecs_.push_back(std::make_unique<ErasureCodec>(wanted));
  return *codecs_.back();
}

void CodedPart::point_at(std::uint32_t submessage) {
  chunks_.clear();
  const std::uint32_t first = shape_.submessages.first(submessage), data = shape_.submessages.data(submessage);
  for (std::uint32_t i = 0; i < data; i++) {
    const bool is_last = first + i + 1 == shape_.chunks();
    chunks_.push_back(is_last ? last_.data() : data_ + (first + i) * shape_.chunk_bytes);
  }
  for (std::uint32_t i = 0; i < shape_.submessages.parity(submessage); i++)
    chunks_.push_back(parity_.data() + (shape_.submessages.first_parity(submessage) + i) * shape_.chunk_bytes);
}

void CodedPart::encode() {
  for (std::uint32_t i = 0; i < shape_.submessages.count(); i++) {
    point_at(i);
    codec_of(i).encode(chunks_.data(), chunks_.data() + shape_.submessages.data(i), shape_.chunk_bytes);
  }
}

bool CodedPart::recover(std::uint32_t submessage, std::span<const std::uint8_t> present) {
  point_at(submessage);
  const std::uint32_t last = shape_.chunks() - 1, first = shape_.submessages.first(submessage);
  const bool has_last = last < first + shape_.submessages.data(submessage);
  const std::uint64_t begin = last * shape_.chunk_bytes;
  if (has_last) std::memcpy(last_.data(), data_ + begin, shape_.bytes - begin);
  if (!codec_of(submessage).recover(chunks_.data(), present, shape_.chunk_bytes)) return false;
  if (has_last) std::memcpy(data_ + begin, last_.data(), shape_.bytes - begin);
  return true;
}

}  // namespace rocebox::sdr
