// SPDX-License-Identifier: BSD-3-Clause
// gzip and zstd, as captures are stored: unpacked while they are read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rocebox {

/// Bytes from a source, unpacked when they begin as gzip (RFC 1952) or zstd (RFC 8878) do, whatever the file is called,
/// and else as they are. Packed files that stand one behind the other are one, as gzip and zstd see it; zeros behind
/// the last, as a tape or a disk image leaves them, are none. Anything else there is left unread, as gzip does.
class Unpacker {
 public:
  /// As read(2): what there is, 0 at the end, -1 with errno.
  using ReadBytes = std::function<long(char* buffer, std::size_t size)>;
  explicit Unpacker(ReadBytes read);
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  /// As read(2). EBADMSG: the bytes are no packed ones, and error() says why.
  long read(char* buffer, std::size_t size);
  /// Whether the source ended inside of what is packed: all before it was read.
  bool cut() const { return cut_; }
  const std::string& error() const { return error_; }
  /// Whether something that is not packed stands behind what is, and was left out.
  bool ignored_rest() const { return ignored_rest_; }

 private:
  enum class Kind : std::uint8_t { kUnknown, kPlain, kGzip, kZstd };
  struct State;
  long find_kind();
  long fill(std::size_t least);
  long read_plain(char* buffer, std::size_t size);
  long read_gzip(char* buffer, std::size_t size);
  long read_zstd(char* buffer, std::size_t size);
  long next_part();
  long broken(const std::string& what);

  ReadBytes read_;
  Kind kind_ = Kind::kUnknown;
  std::unique_ptr<State> state_;
  std::vector<char> bytes_;
  std::span<char> held_;  // of bytes_: read and not yet used
  bool source_ended_ = false, ended_ = false, cut_ = false, ignored_rest_ = false;
  std::string error_;
};

}  // namespace rocebox
