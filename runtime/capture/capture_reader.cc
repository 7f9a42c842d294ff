// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/capture/capture_reader.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>

#include "runtime/kernel/kernel.h"
#include "runtime/process/file_place.h"

namespace rocebox {
namespace {

// Link types whose records hold a whole Ethernet frame, and what stands around it.
struct LinkType {
  int dlt;
  std::uint32_t front, back;
};
constexpr LinkType kEthernetLinkTypes[] = {
    {DLT_EN10MB, 0, 0},
    {DLT_NETANALYZER, 4, 4},               // pseudo header; FCS
    {DLT_NETANALYZER_TRANSPARENT, 12, 4},  // pseudo header, preamble and SFD; FCS
    {DLT_ETHERNET_MPACKET, 8, 4},          // preamble and SMD of an express or complete mPacket; CRC
    {DLT_DSA_TAG_BRCM_PREPEND, 4, 0},      // a Broadcom switch's tag
};

std::string explain_link_type(int dlt) {
  const char* name = pcap_datalink_val_to_name(dlt);
  const std::string type = fmt::format("link type {}", name ? name : std::to_string(dlt));
  switch (dlt) {
    case DLT_LINUX_SLL:
    case DLT_LINUX_SLL2:
      return type + " (`tcpdump -i any`) has no Ethernet header; capture with `-i INTERFACE`";
    case DLT_DSA_TAG_BRCM:
    case DLT_DSA_TAG_DSA:
    case DLT_DSA_TAG_EDSA:
      return type +
             " has a switch's tag inside the Ethernet header; capture on the switch's port instead of its uplink";
    case DLT_ERF:
      return type + " wraps frames in Endace records, which are not unwrapped here; export the capture as Ethernet";
    default:
      return type + " is none with whole Ethernet frames that is known here (EN10MB, NETANALYZER, " +
             "NETANALYZER_TRANSPARENT, ETHERNET_MPACKET, DSA_TAG_BRCM_PREPEND)";
  }
}

// libpcap wants all interfaces of a pcapng to be alike; its words say neither why nor what to do.
std::string explain(const std::string& path, std::string why) {
  if (why.find("different from the snapshot length of the first interface") != std::string::npos)
    return fmt::format(
        "its interfaces differ in snapshot length, which libpcap cannot read; `editcap -F nsecpcap {} "
        "one.pcap` makes one that it can",
        path);
  if (why.find("different from the type of the first interface") != std::string::npos)
    return fmt::format(
        "its interfaces differ in link type, which libpcap cannot read; `tshark -r {} -Y frame.encap_type==1 -w "
        "ethernet.pcapng && editcap -F nsecpcap -T ether ethernet.pcapng one.pcap` takes the Ethernet packets out",
        path);
  return why;
}

bool ends_early(const std::string& why) {
  return why.find("truncated dump file") != std::string::npos ||
         why.find("truncated pcapng dump file") != std::string::npos;
}

// Of the pcap header's link type field: whether bits tell the FCS that each record ends with, and its 16-bit words.
constexpr std::uint32_t kFcsPresent = 0x04000000;
constexpr unsigned kFcsWordsShift = 28;

}  // namespace

CaptureReader::CaptureReader(std::string path, WaitHooks hooks) try : path_(path), stream_(path, std::move(hooks)) {
  std::FILE* file = stream_.open_file();
  char why[PCAP_ERRBUF_SIZE] = "";
  pcap_ = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, why);
  if (pcap_) {
    set_link_type();
    return;
  }
  std::fclose(file);
  if (stream_.stopped()) return;
  if (!stream_.error().empty()) throw ConfigError(stream_.error());
  const std::string text = why;
  if (text.find("unknown file format") != std::string::npos) throw ConfigError("neither pcap nor pcapng");
  throw ConfigError(ends_early(text) ? "ends inside the file header: no capture" : explain(path_, text));
} catch (const ConfigError& error) {
  throw ConfigError(shown_file(path) + ": " + error.what());  // the members are gone here, the argument is not
}

CaptureReader::~CaptureReader() {
  if (pcap_) pcap_close(pcap_);
}

void CaptureReader::set_link_type() {
  const int dlt = pcap_datalink(pcap_);
  const auto found = std::find_if(std::begin(kEthernetLinkTypes), std::end(kEthernetLinkTypes),
                                  [&](const LinkType& type) { return type.dlt == dlt; });
  if (found == std::end(kEthernetLinkTypes)) {
    pcap_close(pcap_);
    pcap_ = nullptr;
    throw ConfigError(explain_link_type(dlt));
  }
  skip_front_ = found->front;
  skip_back_ = found->back;
  const auto extension = static_cast<std::uint32_t>(pcap_datalink_ext(pcap_));
  if (dlt == DLT_EN10MB && (extension & kFcsPresent)) skip_back_ = (extension >> kFcsWordsShift) * 2;
}

CaptureReader::Status CaptureReader::failed() {
  if (stream_.stopped()) return Status::kEnd;
  if (!stream_.error().empty()) {
    error_ = stream_.error();
    return Status::kBroken;
  }
  const std::string why = pcap_geterr(pcap_);
  error_ = explain(path_, why);
  // libpcap's wording for a file that ends early; anything else means that the bytes are no record.
  return ends_early(why) ? Status::kCut : Status::kBroken;
}

// False, with the reason in error_, for a time that 64 bits of nanoseconds since 1970 cannot hold.
bool CaptureReader::take_time(long seconds, long nanos, Nanos& at) {
  // pcap's 32 bits of seconds are unsigned; libpcap extends their sign, so times from 2038 on come out negative.
  // pcapng has 64 bits, and negative ones are meant.
  const bool is_pcap = pcap_major_version(pcap_) == 2;
  Nanos whole = seconds;
  if (is_pcap && whole < 0) whole = static_cast<Nanos>(static_cast<std::uint32_t>(whole));
  const bool fits = !__builtin_mul_overflow(whole, kSecond, &at) && !__builtin_add_overflow(at, Nanos{nanos}, &at);
  if (fits && at >= 0) return true;
  error_ = whole < 0 ? "its time lies before 1970; `editcap -t SECONDS` moves the times of a capture"
                     : "its time lies beyond the year 2262";
  return false;
}

CaptureReader::Status CaptureReader::next(CaptureRecord& record) {
  if (!pcap_) return Status::kEnd;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  const int result = pcap_next_ex(pcap_, &header, &data);
  if (result == PCAP_ERROR_BREAK) return stream_.cut() && !stream_.stopped() ? Status::kCut : Status::kEnd;
  if (result != 1) return failed();
  if (!take_time(header->ts.tv_sec, header->ts.tv_usec, record.at)) return Status::kBroken;
  records_++;
  std::uint32_t held = header->caplen, wire = std::max(header->len, header->caplen);
  const std::uint32_t front = std::min(skip_front_, held);
  // The FCS stands at the end of the wire; a snapped record does not hold all of it.
  wire -= std::min(wire, skip_front_ + skip_back_);
  held = std::min(held - front, wire);
  record.bytes = {data + front, held};
  record.wire_bytes = wire;
  return Status::kPacket;
}

}  // namespace rocebox
