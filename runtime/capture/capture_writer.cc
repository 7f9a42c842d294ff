// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/capture/capture_writer.h"

#include <string>

namespace rocebox {
namespace {

constexpr std::uint32_t kNanosecondMagic = 0xA1B23C4D, kLinkTypeEthernet = 1, kSnapLength = 262144;

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
constexpr std::uint32_t kSection = 0x0A0D0D0A, kInterface = 1, kStatistics = 5, kEnhancedPacket = 6;
constexpr std::uint16_t kOptEnd = 0, kOptComment = 1, kOptIfName = 2, kOptIfTsResol = 9, kOptUserApplication = 4,
                        kOptPacketFlags = 2, kOptDroppedBySystem = 7;

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

CaptureWriter::CaptureWriter(const std::string& path, const std::vector<std::string>& interfaces, Waiting waiting)
    : file_(path, waiting), pcapng_(is_pcapng_name(path)) {
  write_header(interfaces);
}

void CaptureWriter::write_header(const std::vector<std::string>& interfaces) {
  if (!pcapng_) {
    const PcapHeader header;
    return file_.write(&header, sizeof header);
  }
  std::string section;
  append(section, std::uint32_t{0x1A2B3C4D});
  append(section, std::uint16_t{1});
  append(section, std::uint16_t{0});
  append(section, std::int64_t{-1});
  append_option(section, kOptUserApplication, "rocebox");
  append_option(section, kOptEnd, "");
  const std::string block = finished(kSection, std::move(section));
  file_.write(block.data(), block.size());
  for (const std::string& name : interfaces) {
    std::string body;
    append(body, std::uint16_t{kLinkTypeEthernet});
    append(body, std::uint16_t{0});
    append(body, kSnapLength);
    append_option(body, kOptIfName, name);
    append_option(body, kOptIfTsResol, std::string_view("\x09", 1));  // 10^-9 s
    append_option(body, kOptEnd, "");
    const std::string interface = finished(kInterface, std::move(body));
    file_.write(interface.data(), interface.size());
  }
}

void CaptureWriter::write(unsigned interface, Nanos at, const CapturedFrame& frame, std::string_view comment) {
  const auto time = static_cast<std::uint64_t>(at);
  packets_++;
  bytes_ += frame.wire_bytes;
  const auto held = static_cast<std::uint32_t>(frame.held.size());
  if (!pcapng_) {
    const PcapRecord record{static_cast<std::uint32_t>(time / 1'000'000'000),
                            static_cast<std::uint32_t>(time % 1'000'000'000), held, frame.wire_bytes};
    file_.write(&record, sizeof record);
    return file_.write(frame.held.data(), held);
  }
  const std::uint32_t padding = (4 - held % 4) % 4;
  std::string options;
  if (!comment.empty()) append_option(options, kOptComment, comment.substr(0, 65535));
  if (frame.direction != Direction::kUnknown) {
    const auto flags = static_cast<std::uint32_t>(frame.direction);
    append_option(options, kOptPacketFlags, {reinterpret_cast<const char*>(&flags), sizeof flags});
  }
  if (!options.empty()) append_option(options, kOptEnd, "");
  const auto total = static_cast<std::uint32_t>(32 + held + padding + options.size());
  const std::uint32_t head[7] = {
      kEnhancedPacket, total, interface, static_cast<std::uint32_t>(time >> 32), static_cast<std::uint32_t>(time), held,
      frame.wire_bytes};
  const std::uint32_t zero = 0;
  file_.write(head, sizeof head);
  file_.write(frame.held.data(), held);
  file_.write(&zero, padding);
  file_.write(options.data(), options.size());
  file_.write(&total, sizeof total);
}

void CaptureWriter::write_lost(std::uint64_t packets) {
  if (!pcapng_) return;
  std::string body;
  append(body, std::uint32_t{0});  // the first interface, and no time
  append(body, std::uint64_t{0});
  append_option(body, kOptDroppedBySystem, {reinterpret_cast<const char*>(&packets), sizeof packets});
  append_option(body, kOptEnd, "");
  const std::string block = finished(kStatistics, std::move(body));
  file_.write(block.data(), block.size());
}

}  // namespace rocebox
