// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/capture_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"

namespace rocebox {
namespace {

constexpr std::uint32_t kNanosecondMagic = 0xA1B23C4D, kLinkTypeEthernet = 1, kSnapLength = 262144;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;  // one system call for many packets

// pcap file and record headers, in the writer's byte order.
struct PcapHeader {
  std::uint32_t magic = kNanosecondMagic;
  std::uint16_t major = 2, minor = 4;
  std::uint32_t zone = 0, accuracy = 0, snap_length = kSnapLength, link_type = kLinkTypeEthernet;
};
struct PcapRecord {
  std::uint32_t seconds, nanos, held, wire;
};

// pcapng blocks (draft-ietf-opsawg-pcapng).
constexpr std::uint32_t kSection = 0x0A0D0D0A, kInterface = 1, kEnhancedPacket = 6;
constexpr std::uint16_t kOptEnd = 0, kOptComment = 1, kOptIfName = 2, kOptIfTsResol = 9, kOptUserApplication = 4;

void append(std::string& block, const void* data, std::size_t size) {
  block.append(static_cast<const char*>(data), size);
}
template <class T>
void append(std::string& block, T value) {
  append(block, &value, sizeof value);
}
void append_option(std::string& block, std::uint16_t code, std::string_view value) {
  append(block, code);
  append(block, static_cast<std::uint16_t>(value.size()));
  block += value;
  block.append((4 - value.size() % 4) % 4, '\0');
}
std::string finished(std::uint32_t type, std::string body) {
  std::string block;
  const auto total = static_cast<std::uint32_t>(body.size() + 12);
  append(block, type);
  append(block, total);
  block += body;
  append(block, total);
  return block;
}

}  // namespace

CaptureWriter::CaptureWriter(std::string path, std::vector<std::string> interfaces) : path_(std::move(path)) {
  pcapng_ = path_.ends_with(".pcapng");
  struct stat status {};
  if (path_ == "-") {
    file_ = fdopen(dup(STDOUT_FILENO), "wb");
  } else {
    const bool exists = stat(path_.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) throw ConfigError(path_ + ": is a folder; give the name of a file");
    if (!exists || S_ISREG(status.st_mode)) part_ = path_ + ".part";
    const std::string& target = part_.empty() ? path_ : part_;
    // An old file that may not be written must not be replaced behind the user's back.
    if (exists && access(path_.c_str(), W_OK) != 0)
      throw ConfigError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
    file_ = std::fopen(target.c_str(), "wb");
  }
  if (!file_) {
    part_.clear();
    throw ConfigError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  }
  buffer_.resize(kBufferBytes);
  std::setvbuf(file_, buffer_.data(), _IOFBF, buffer_.size());
  write_header(interfaces);
}

CaptureWriter::~CaptureWriter() {
  if (file_) std::fclose(file_);
  if (!part_.empty()) unlink(part_.c_str());
}

void CaptureWriter::put(const void* data, std::size_t size) {
  if (std::fwrite(data, 1, size, file_) != size && error_ == 0) error_ = errno ? errno : EIO;
}

void CaptureWriter::write_header(const std::vector<std::string>& interfaces) {
  if (!pcapng_) {
    const PcapHeader header;
    return put(&header, sizeof header);
  }
  std::string section;
  append(section, std::uint32_t{0x1A2B3C4D});
  append(section, std::uint16_t{1});
  append(section, std::uint16_t{0});
  append(section, std::int64_t{-1});
  append_option(section, kOptUserApplication, "rocebox");
  append_option(section, kOptEnd, "");
  const std::string block = finished(kSection, std::move(section));
  put(block.data(), block.size());
  for (const std::string& name : interfaces) {
    std::string body;
    append(body, std::uint16_t{kLinkTypeEthernet});
    append(body, std::uint16_t{0});
    append(body, kSnapLength);
    append_option(body, kOptIfName, name);
    append_option(body, kOptIfTsResol, std::string_view("\x09", 1));  // 10^-9 s
    append_option(body, kOptEnd, "");
    const std::string interface = finished(kInterface, std::move(body));
    put(interface.data(), interface.size());
  }
}

void CaptureWriter::write(unsigned interface, Nanos at, Packet packet, std::string_view comment) {
  const auto time = static_cast<std::uint64_t>(at);
  packets_++;
  bytes_ += packet.wire_bytes();
  if (!pcapng_) {
    const PcapRecord record{static_cast<std::uint32_t>(time / 1'000'000'000),
                            static_cast<std::uint32_t>(time % 1'000'000'000), packet.size(), packet.wire_bytes()};
    put(&record, sizeof record);
    return put(packet.data(), packet.size());
  }
  const std::uint32_t padding = (4 - packet.size() % 4) % 4;
  std::string options;
  if (!comment.empty()) {
    append_option(options, kOptComment, comment.substr(0, 65535));
    append_option(options, kOptEnd, "");
  }
  const auto total = static_cast<std::uint32_t>(32 + packet.size() + padding + options.size());
  const std::uint32_t head[7] = {kEnhancedPacket,
                                 total,
                                 interface,
                                 static_cast<std::uint32_t>(time >> 32),
                                 static_cast<std::uint32_t>(time),
                                 packet.size(),
                                 packet.wire_bytes()};
  const std::uint32_t zero = 0;
  put(head, sizeof head);
  put(packet.data(), packet.size());
  put(&zero, padding);
  put(options.data(), options.size());
  put(&total, sizeof total);
}

std::string CaptureWriter::failed() const {
  return error_ ? fmt::format("{}: cannot be written: {}", path_, std::strerror(error_)) : std::string();
}

void CaptureWriter::fail() { throw std::runtime_error(failed()); }

void CaptureWriter::finish() {
  if (std::fflush(file_) != 0 && error_ == 0) error_ = errno;
  if (std::fclose(file_) != 0 && error_ == 0) error_ = errno;
  file_ = nullptr;
  if (error_) fail();
  if (part_.empty()) return;
  if (std::rename(part_.c_str(), path_.c_str()) != 0) error_ = errno, fail();
  part_.clear();
}

}  // namespace rocebox
