// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/capture/unpacker.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <string_view>

namespace rocebox {
namespace {

constexpr std::size_t kPackedBytes = std::size_t{256} << 10;  // one system call for many packets
constexpr std::size_t kMagicBytes = 4;                        // the longer of both
constexpr int kGzipWindow = 15 + 16;                          // zlib's word for the largest, in gzip's format

// The first bytes of a packed file; of zstd's those of a frame that is to be skipped, too, with which pzstd begins.
struct Magic {
  std::string_view bytes;
  unsigned char free_bits;  // of the first byte
};
constexpr Magic kGzip[] = {{"\x1f\x8b", 0}};
constexpr Magic kZstd[] = {{"\x28\xb5\x2f\xfd", 0}, {"\x50\x2a\x4d\x18", 0x0f}};

// Whether the bytes begin so, as far as there are any.
bool agree(std::span<const char> bytes, const Magic& magic) {
  const std::size_t size = std::min(bytes.size(), magic.bytes.size());
  for (std::size_t i = 0; i < size; i++)
    if (((bytes[i] ^ magic.bytes[i]) & ~(i == 0 ? magic.free_bits : 0) & 0xFF) != 0) return false;
  return true;
}
bool begins(std::span<const char> bytes, std::span<const Magic> magics) {
  return std::any_of(magics.begin(), magics.end(),
                     [&](const Magic& magic) { return bytes.size() >= magic.bytes.size() && agree(bytes, magic); });
}
// Whether the bytes are less than that, and would have become it.
bool may_begin(std::span<const char> bytes, std::span<const Magic> magics) {
  return std::any_of(magics.begin(), magics.end(), [&](const Magic& magic) { return agree(bytes, magic); });
}

}  // namespace

struct Unpacker::State {
  z_stream gzip{};
  bool has_gzip = false, member_ended = false;
  ZSTD_DStream* zstd = nullptr;
  std::size_t zstd_wants = 0;  // 0: a frame is complete
  ~State() {
    if (has_gzip) inflateEnd(&gzip);
    ZSTD_freeDStream(zstd);
  }
};

Unpacker::Unpacker(ReadBytes read) : read_(std::move(read)), state_(std::make_unique<State>()) {}
Unpacker::~Unpacker() = default;

long Unpacker::broken(const std::string& what) {
  error_ = what;
  errno = EBADMSG;
  return -1;
}

// Has at least so many bytes in held_, or all that there are. -1 with errno.
long Unpacker::fill(std::size_t least) {
  if (held_.size() >= least || source_ended_) return 0;
  std::memmove(bytes_.data(), held_.data(), held_.size());
  std::size_t held = held_.size();
  while (held < least) {
    const long count = read_(bytes_.data() + held, bytes_.size() - held);
    if (count < 0) return -1;
    source_ended_ = count == 0;
    if (source_ended_) break;
    held += static_cast<std::size_t>(count);
  }
  held_ = {bytes_.data(), held};
  return 0;
}

long Unpacker::find_kind() {
  bytes_.resize(kPackedBytes);
  held_ = {bytes_.data(), 0};
  if (fill(kMagicBytes) < 0) return -1;
  kind_ = begins(held_, kGzip) ? Kind::kGzip : begins(held_, kZstd) ? Kind::kZstd : Kind::kPlain;
  if (kind_ == Kind::kGzip) {
    if (inflateInit2(&state_->gzip, kGzipWindow) != Z_OK) throw std::bad_alloc();
    state_->has_gzip = true;
  }
  if (kind_ == Kind::kZstd && !(state_->zstd = ZSTD_createDStream())) throw std::bad_alloc();
  return 0;
}

long Unpacker::read(char* buffer, std::size_t size) {
  if (!error_.empty()) return broken(error_);
  if (kind_ == Kind::kUnknown && find_kind() < 0) return -1;
  if (ended_ || size == 0) return 0;
  return kind_ == Kind::kPlain  ? read_plain(buffer, size)
         : kind_ == Kind::kGzip ? read_gzip(buffer, size)
                                : read_zstd(buffer, size);
}

long Unpacker::read_plain(char* buffer, std::size_t size) {
  if (held_.empty()) return source_ended_ ? 0 : read_(buffer, size);
  const std::size_t count = std::min(size, held_.size());
  std::memcpy(buffer, held_.data(), count);
  held_ = held_.subspan(count);
  return static_cast<long>(count);
}

// Behind the end of a packed file: another one, zeros, nothing, or what is no part of it. Sets ended_ but for the
// first.
long Unpacker::next_part() {
  const std::span<const Magic> magics = kind_ == Kind::kGzip ? std::span<const Magic>(kGzip) : kZstd;
  if (fill(kMagicBytes) < 0) return -1;
  while (!held_.empty() && held_[0] == '\0') {
    held_ = held_.subspan(1);
    if (fill(kMagicBytes) < 0) return -1;
  }
  if (begins(held_, magics)) return 0;
  ended_ = true;
  if (held_.empty()) return 0;
  (may_begin(held_, magics) ? cut_ : ignored_rest_) = true;
  return 0;
}

long Unpacker::read_gzip(char* buffer, std::size_t size) {
  z_stream& stream = state_->gzip;
  const auto room = static_cast<uInt>(std::min<std::size_t>(size, INT_MAX));
  stream.next_out = reinterpret_cast<Bytef*>(buffer);
  stream.avail_out = room;
  while (stream.avail_out == room) {
    if (state_->member_ended) {
      if (next_part() < 0) return -1;
      if (ended_) break;
      inflateReset(&stream);
      state_->member_ended = false;
    }
    if (fill(1) < 0) return -1;
    stream.next_in = reinterpret_cast<Bytef*>(held_.data());
    stream.avail_in = static_cast<uInt>(held_.size());
    const int result = inflate(&stream, Z_NO_FLUSH);
    const bool used = stream.avail_in < held_.size();
    held_ = held_.last(stream.avail_in);
    state_->member_ended = result == Z_STREAM_END;
    if (!state_->member_ended && result != Z_OK && result != Z_BUF_ERROR) {
      broken(fmt::format("its gzip data are broken: {}", stream.msg ? stream.msg : "a wrong dictionary"));
      if (stream.avail_out == room) return -1;
      break;  // first what was good
    }
    if (held_.empty() && source_ended_ && !used && !state_->member_ended && stream.avail_out == room) {
      ended_ = cut_ = true;
      break;
    }
  }
  return static_cast<long>(room - stream.avail_out);
}

long Unpacker::read_zstd(char* buffer, std::size_t size) {
  ZSTD_outBuffer out{buffer, size, 0};
  while (out.pos == 0) {
    if (state_->zstd_wants == 0) {
      if (next_part() < 0) return -1;
      if (ended_) break;
    }
    if (fill(1) < 0) return -1;
    ZSTD_inBuffer in{held_.data(), held_.size(), 0};
    const std::size_t result = ZSTD_decompressStream(state_->zstd, &out, &in);
    if (ZSTD_isError(result)) {
      const long error = broken(fmt::format("its zstd data are broken: {}", ZSTD_getErrorName(result)));
      return out.pos == 0 ? error : static_cast<long>(out.pos);  // first what was good
    }
    const bool used = in.pos > 0;
    held_ = held_.subspan(in.pos);
    state_->zstd_wants = result;
    if (held_.empty() && source_ended_ && !used && out.pos == 0) {
      ended_ = cut_ = true;
      break;
    }
  }
  return static_cast<long>(out.pos);
}

}  // namespace rocebox
