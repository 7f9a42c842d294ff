// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/capture_reader.h"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

// Link types whose records hold a whole Ethernet frame, and what stands around it.
struct LinkType {
  int dlt;
  std::uint32_t front, back;
};
constexpr LinkType kEthernetLinkTypes[] = {
    {DLT_EN10MB, 0, 0},
    {DLT_NETANALYZER, 4, 4},       // pseudo header; FCS
    {DLT_ETHERNET_MPACKET, 8, 4},  // preamble and SMD of an express or complete mPacket; CRC
};

std::string explain_link_type(int dlt) {
  const char* name = pcap_datalink_val_to_name(dlt);
  std::string text = fmt::format("link type {} carries no Ethernet frames", name ? name : std::to_string(dlt));
  if (dlt == DLT_LINUX_SLL || dlt == DLT_LINUX_SLL2) text += "; capture on one interface instead of `any`";
  return text;
}

}  // namespace

CaptureFilter::CaptureFilter(const std::string& text) {
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
  pcap_pkthdr header{};
  header.caplen = static_cast<bpf_u_int32>(record.bytes.size());
  header.len = record.wire_bytes;
  return pcap_offline_filter(program_.get(), &header, record.bytes.data()) != 0;
}

CaptureReader::CaptureReader(std::string path) : path_(std::move(path)) {
  struct stat status {};
  if (path_ != "-" && stat(path_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) throw ConfigError(path_ + ": is a folder, not a capture");
    if (S_ISREG(status.st_mode)) file_bytes_ = static_cast<std::uint64_t>(status.st_size);
  }
  char why[PCAP_ERRBUF_SIZE] = "";
  pcap_ = pcap_open_offline_with_tstamp_precision(path_.c_str(), PCAP_TSTAMP_PRECISION_NANO, why);
  if (!pcap_) {
    std::string text = why;
    if (!text.starts_with(path_)) text = path_ + ": " + text;
    if (text.find("unknown file format") != std::string::npos)
      text = path_ + ": neither pcap nor pcapng";
    else if (text.find("truncated dump file") != std::string::npos)
      text = path_ + ": ends inside the file header: no capture";
    throw ConfigError(text);
  }
  const int dlt = pcap_datalink(pcap_);
  const auto found = std::find_if(std::begin(kEthernetLinkTypes), std::end(kEthernetLinkTypes),
                                  [&](const LinkType& type) { return type.dlt == dlt; });
  if (found == std::end(kEthernetLinkTypes)) {
    pcap_close(pcap_);
    pcap_ = nullptr;
    throw ConfigError(path_ + ": " + explain_link_type(dlt));
  }
  skip_front_ = found->front;
  skip_back_ = found->back;
}

CaptureReader::~CaptureReader() {
  if (pcap_) pcap_close(pcap_);
}

CaptureReader::Status CaptureReader::next(CaptureRecord& record) {
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  const int result = pcap_next_ex(pcap_, &header, &data);
  if (result == PCAP_ERROR_BREAK) return Status::kEnd;
  if (result != 1) {
    error_ = pcap_geterr(pcap_);
    // libpcap's wording for a file that ends early; anything else means that the bytes are no record.
    const bool ends_early = error_.find("truncated dump file") != std::string::npos ||
                            error_.find("truncated pcapng dump file") != std::string::npos;
    return ends_early ? Status::kCut : Status::kBroken;
  }
  records_++;
  // pcap's 32 bits of seconds are unsigned; libpcap extends their sign, so times from 2038 on come out negative.
  const Nanos whole = header->ts.tv_sec < 0 && header->ts.tv_sec >= INT32_MIN
                          ? static_cast<Nanos>(static_cast<std::uint32_t>(header->ts.tv_sec))
                          : static_cast<Nanos>(header->ts.tv_sec);
  Nanos seconds = 0;
  if (__builtin_mul_overflow(whole, kSecond, &seconds) ||
      __builtin_add_overflow(seconds, static_cast<Nanos>(header->ts.tv_usec), &record.at) || record.at < 0) {
    error_ = "its time lies beyond the year 2262";
    return Status::kBroken;
  }
  std::uint32_t held = header->caplen, wire = std::max(header->len, header->caplen);
  const std::uint32_t front = std::min(skip_front_, held);
  // The FCS stands at the end of the wire; a snapped record does not hold all of it.
  wire -= std::min(wire, skip_front_ + skip_back_);
  held = std::min(held - front, wire);
  record.bytes = {data + front, held};
  record.wire_bytes = wire;
  return Status::kPacket;
}

std::uint64_t CaptureReader::position() const {
  FILE* file = pcap_file(pcap_);
  const long at = file && file_bytes_ ? std::ftell(file) : 0;
  return at > 0 ? static_cast<std::uint64_t>(at) : 0;
}

}  // namespace rocebox
