// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/capture/capture_filter.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <cctype>

#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"
#include "runtime/roce/headers.h"

namespace rocebox {
namespace {

constexpr std::size_t kAddressBytes = 12, kTagBytes = 4;  // both MAC addresses; one 802.1Q tag

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.'; }

// Whether the filter names VLAN tags or offsets into the frame: then it must see the frame as it is.
bool speaks_of_tags(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) end++;
    const std::string word = text.substr(at, end - at);
    if (word == "vlan") return true;
    const std::size_t next = text.find_first_not_of(" \t\n", end);
    if ((word == "ether" || word == "link") && next != std::string::npos && text[next] == '[') return true;
    at = end == at ? at + 1 : end;
  }
  return false;
}

std::size_t tag_bytes(std::span<const std::uint8_t> frame) {
  std::size_t bytes = 0;
  for (unsigned tags = 0; tags < kVlanTagsMax && kAddressBytes + bytes + kTagBytes + 2 <= frame.size(); tags++) {
    const unsigned type = frame[kAddressBytes + bytes] << 8 | frame[kAddressBytes + bytes + 1];
    if (type != roce::kEtherVlan && type != roce::kEtherQinq && type != roce::kEtherQinqOld) break;
    bytes += kTagBytes;
  }
  return bytes;
}

}  // namespace

CaptureFilter::CaptureFilter(const std::string& text) : sees_tags_(speaks_of_tags(text)) {
  if (text.empty()) return;
  pcap_t* dead = pcap_open_dead(DLT_EN10MB, 65535);
  program_ = std::make_unique<bpf_program>();
  if (pcap_compile(dead, program_.get(), text.c_str(), 1, PCAP_NETMASK_UNKNOWN) != 0) {
    const std::string why = pcap_geterr(dead);
    pcap_close(dead);
    program_.reset();
    throw ConfigError(fmt::format("filter `{}`: {}", text, why));
  }
  pcap_close(dead);
}
CaptureFilter::~CaptureFilter() {
  if (program_) pcap_freecode(program_.get());
}
CaptureFilter::CaptureFilter(CaptureFilter&& other) noexcept = default;

bool CaptureFilter::matches(const CaptureRecord& record) const {
  if (!program_) return true;
  std::span<const std::uint8_t> frame = record.bytes;
  const std::size_t tags = sees_tags_ ? 0 : tag_bytes(frame);
  if (tags > 0) {
    untagged_.assign(frame.begin(), frame.begin() + kAddressBytes);
    untagged_.insert(untagged_.end(), frame.begin() + static_cast<std::ptrdiff_t>(kAddressBytes + tags), frame.end());
    frame = untagged_;
  }
  pcap_pkthdr header{};
  header.caplen = static_cast<bpf_u_int32>(frame.size());
  header.len = static_cast<bpf_u_int32>(record.wire_bytes - tags);
  return pcap_offline_filter(program_.get(), &header, frame.data()) != 0;
}

}  // namespace rocebox
