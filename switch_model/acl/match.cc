// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/acl/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "runtime/config/document.h"
#include "runtime/config/units.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::switch_model::acl {
namespace {

struct Word {
  std::string_view word;
  std::uint16_t number;
};
constexpr Word kProtocols[] = {{"icmp", 1}, {"tcp", 6}, {"udp", 17}, {"icmpv6", 58}};
constexpr Word kEthertypes[] = {{"ipv4", 0x0800},    {"arp", 0x0806},  {"ipv6", 0x86DD}, {"mac_control", 0x8808},
                                {"roce_v1", 0x8915}, {"lldp", 0x88CC}, {"ptp", 0x88F7}};
constexpr std::uint8_t kDscpMask = 0xFC;
constexpr unsigned kPortBits = 16;

struct Masked {
  std::uint64_t value = 0, mask = 0;
};

// "0x11", "17", "0x10/0xf0"; empty when it is none or has more bits.
std::optional<Masked> parse_masked(std::string_view text, unsigned bits) {
  const std::int64_t most = (std::int64_t{1} << bits) - 1;
  const auto number = [&](std::string_view part) -> std::optional<std::uint64_t> {
    const auto n = config::parse_integer(part);
    if (!n || *n < 0 || *n > most) return {};
    return static_cast<std::uint64_t>(*n);
  };
  const std::size_t slash = text.find('/');
  const auto value = number(text.substr(0, slash));
  const auto mask =
      slash == std::string_view::npos ? std::optional<std::uint64_t>(most) : number(text.substr(slash + 1));
  if (!value || !mask) return {};
  return Masked{*value, *mask};
}

template <std::size_t N>
std::optional<std::uint16_t> parse_word(const std::string& text, const Word (&words)[N], unsigned bits) {
  for (const Word& word : words)
    if (word.word == text) return word.number;
  const auto number = parse_masked(text, bits);
  if (!number || text.find('/') != std::string::npos) return {};
  return static_cast<std::uint16_t>(number->value);
}
template <std::size_t N>
std::string word_list(const Word (&words)[N]) {
  std::string list;
  for (const Word& word : words) list += fmt::format("{}{}", list.empty() ? "" : ", ", word.word);
  return list;
}

// "RC RDMA WRITE First" is written rc_rdma_write_first.
std::string opcode_word(std::uint8_t opcode) {
  std::string word(roce::opcode_name(opcode));
  for (char& c : word) c = c == ' ' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return word;
}
std::optional<Masked> parse_opcode(const std::string& text) {
  for (unsigned opcode = 0; opcode < 256; opcode++) {
    const auto number = static_cast<std::uint8_t>(opcode);
    if (roce::opcode_info(number).has(roce::kIsKnown) && opcode_word(number) == text) return Masked{opcode, 0xFF};
  }
  return parse_masked(text, 8);
}
std::string opcode_suggestion(const std::string& text) {
  std::vector<std::string> words;
  for (unsigned opcode = 0; opcode < 256; opcode++)
    if (roce::opcode_info(static_cast<std::uint8_t>(opcode)).has(roce::kIsKnown))
      words.push_back(opcode_word(static_cast<std::uint8_t>(opcode)));
  const std::string_view near = config::nearest(text, words);
  return near.empty() ? "" : fmt::format("; did you mean `{}`?", near);
}

// "02:00:00:00:00:01", "02:00:00:00:00:00/ff:ff:ff:00:00:00"
std::optional<MaskedMac> parse_masked_mac(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto value = roce::parse_mac(text.substr(0, slash));
  const auto mask = roce::parse_mac(slash == std::string::npos ? "ff:ff:ff:ff:ff:ff" : text.substr(slash + 1));
  if (!value || !mask) return {};
  return MaskedMac{*value, *mask};
}
std::string masked_mac_text(const MaskedMac& mac) { return roce::mac_text(mac.value) + "/" + roce::mac_text(mac.mask); }

// A prefix, or one address.
std::optional<roce::Prefix> parse_addresses(const std::string& text, std::string& why) {
  if (text.find('/') != std::string::npos) return roce::parse_prefix(text, why);
  const bool ipv6 = text.find(':') != std::string::npos;
  const auto prefix = roce::parse_prefix(text + (ipv6 ? "/128" : "/32"), why);
  if (!prefix) why = fmt::format("must be an address or a prefix, such as 10.0.0.1 or 2001:db8::/64, found `{}`", text);
  return prefix;
}

struct PortRange {
  std::uint32_t low = 0, high = 0xFFFF;
};
// "4791", "1000-2000"
std::optional<PortRange> parse_port_range(const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto low = parse_masked(text.substr(0, dash), kPortBits);
  const auto high = dash == std::string::npos ? low : parse_masked(text.substr(dash + 1), kPortBits);
  if (!low || !high || text.find('/') != std::string::npos || low->value > high->value) return {};
  return PortRange{static_cast<std::uint32_t>(low->value), static_cast<std::uint32_t>(high->value)};
}

// A range as values under masks: the largest aligned block that fits, again and again; at most 30.
std::vector<Masked> masks_of(const std::string& text) {
  if (text.empty()) return {{}};
  const auto range = parse_port_range(text);
  std::vector<Masked> all;
  if (!range) return all;
  for (std::uint32_t at = range->low; at <= range->high;) {
    std::uint32_t size = 1;
    while (at % (2 * size) == 0 && at + 2 * size - 1 <= range->high && size <= 0x8000) size *= 2;
    all.push_back({at, 0xFFFFu & ~(size - 1)});
    at += size;
  }
  return all;
}

void set(std::array<std::uint8_t, 2>& field, std::uint64_t number) {
  field = {static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)};
}
void flag(Row& row, std::uint8_t flags) {
  row.value.flags |= flags;
  row.mask.flags |= flags;
}
void set_address(Row& row, const std::optional<roce::Prefix>& prefix, std::array<std::uint8_t, 16> Key::*field) {
  if (!prefix) return;
  row.value.ip_version = prefix->is_ipv4 ? 4 : 6;
  row.mask.ip_version = 0xFF;
  const unsigned first = prefix->is_ipv4 ? 96 : 0;
  for (unsigned bit = first; bit < first + prefix->bits; bit++) {
    const auto one = static_cast<std::uint8_t>(0x80 >> bit % 8);
    (row.mask.*field)[bit / 8] |= one;
    (row.value.*field)[bit / 8] |= static_cast<std::uint8_t>(prefix->address[bit / 8] & one);
  }
}

void set_mac(Row& row, const std::optional<MaskedMac>& mac, Mac Key::*field) {
  if (!mac) return;
  row.value.*field = mac->value;
  row.mask.*field = mac->mask;
}

// What every row of a match has.
Row common_row(const Match& match) {
  Row row{};
  set_mac(row, match.source_mac, &Key::source_mac);
  set_mac(row, match.destination_mac, &Key::destination_mac);
  if (const auto type = parse_word(match.ethertype, kEthertypes, 16)) {
    set(row.value.ethertype, *type);
    set(row.mask.ethertype, 0xFFFF);
  }
  if (match.vlan >= 0) {
    set(row.value.vlan, static_cast<std::uint64_t>(match.vlan));
    set(row.mask.vlan, 0x0FFF);
  }
  set_address(row, match.source, &Key::source);
  set_address(row, match.destination, &Key::destination);
  if (const auto protocol = parse_word(match.protocol, kProtocols, 8)) {
    row.value.protocol = static_cast<std::uint8_t>(*protocol);
    row.mask.protocol = 0xFF;
    flag(row, kIsIp);
  }
  if (match.dscp >= 0) {
    row.value.tos |= static_cast<std::uint8_t>(match.dscp << 2);
    row.mask.tos |= kDscpMask;
    flag(row, kIsIp);
  }
  if (match.ecn >= 0) {
    row.value.tos |= static_cast<std::uint8_t>(match.ecn);
    row.mask.tos |= roce::kEcnMask;
    flag(row, kIsIp);
  }
  if (!match.source_port.empty() || !match.destination_port.empty()) flag(row, kHasPorts);
  if (const auto qp = parse_masked(match.destination_qp, 24); qp && !match.destination_qp.empty()) {
    for (unsigned i = 0; i < 3; i++) {
      row.value.destination_qp[i] = static_cast<std::uint8_t>(qp->value >> (16 - 8 * i));
      row.mask.destination_qp[i] = static_cast<std::uint8_t>(qp->mask >> (16 - 8 * i));
    }
    flag(row, kHasQp);
  }
  return row;
}

}  // namespace

void Match::fields(Fields& f, const SwitchInfo& info) {
  info.read_ports(f, "ports", ports, "ports of the switch that the packet came in by");
  const auto text = [&f](std::string_view name, std::string& value, std::string_view doc, auto good,
                         std::string_view must) {
    f.text(name, value, doc);
    if (!value.empty() && !good(value)) f.refuse(name, fmt::format("must be {}, found `{}`", must, value));
  };
  const auto masked_mac = [&f](std::string_view name, std::optional<MaskedMac>& value, std::string_view doc) {
    std::string written = value ? masked_mac_text(*value) : "";
    f.text(name, written, doc);
    value = parse_masked_mac(written);
    if (!value && !written.empty())
      f.refuse(name, fmt::format("must be a MAC address, such as 02:00:00:00:00:01, or one with a mask behind `/`, "
                                 "found `{}`",
                                 written));
  };
  masked_mac("source_mac", source_mac, "source MAC address, with a mask behind `/`");
  masked_mac("destination_mac", destination_mac, "destination MAC address, with a mask behind `/`");
  text(
      "ethertype", ethertype, fmt::format("type behind VLAN tags: a number or {}", word_list(kEthertypes)),
      [](const std::string& t) { return parse_word(t, kEthertypes, 16).has_value(); },
      fmt::format("a number from 0 to 0xffff or one of {}", word_list(kEthertypes)));
  f.integer("vlan", vlan, {-1, 4095}, "VLAN identifier of the outermost tag; 0: untagged; -1: any");
  const auto addresses = [&f](std::string_view name, std::optional<roce::Prefix>& value, std::string_view doc) {
    std::string written = value ? roce::prefix_text(*value) : "", why;
    f.text(name, written, doc);
    value = parse_addresses(written, why);
    if (!value && !written.empty()) f.refuse(name, why);
  };
  addresses("source", source, "source IP addresses: a prefix, or one address");
  addresses("destination", destination, "destination IP addresses: a prefix, or one address");
  if (source && destination && source->is_ipv4 != destination->is_ipv4)
    f.refuse("destination", "is of another address family than `source`: no packet has both");
  text(
      "protocol", protocol, fmt::format("IP protocol: a number or {}", word_list(kProtocols)),
      [](const std::string& t) { return parse_word(t, kProtocols, 8).has_value(); },
      fmt::format("a number from 0 to 255 or one of {}", word_list(kProtocols)));
  const auto is_range = [](const std::string& t) { return parse_port_range(t).has_value(); };
  constexpr std::string_view kRange = "a port, such as 4791, or a range, such as 1000-2000";
  text("source_port", source_port, "source port of TCP or UDP, or a range, such as 1000-2000", is_range, kRange);
  text("destination_port", destination_port, "destination port of TCP or UDP, or a range", is_range, kRange);
  if (const auto number = parse_word(protocol, kProtocols, 8);
      number && *number != kTcp && *number != roce::kIpProtocolUdp && !(source_port + destination_port).empty())
    f.refuse("protocol", "has no ports; `source_port` and `destination_port` are those of tcp and udp");
  f.integer("dscp", dscp, {-1, 63}, "DSCP; -1: any");
  f.integer("ecn", ecn, {-1, 3}, "ECN codepoint: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE; -1: any");
  f.texts("opcodes", opcodes,
          "RoCE opcodes, any of: names, such as rc_acknowledge or cnp, numbers, or values under a mask: 0x60/0xe0");
  for (const std::string& opcode : opcodes)
    if (!parse_opcode(opcode))
      f.refuse("opcodes",
               fmt::format("must hold names such as rc_rdma_write_first, numbers from 0 to 0xff or 0x60/0xe0, found "
                           "`{}`{}",
                           opcode, opcode_suggestion(opcode)));
  text(
      "destination_qp", destination_qp, "RoCE destination QP: a number, or a value under a mask: 0x100/0xffff00",
      [](const std::string& t) { return parse_masked(t, 24).has_value(); },
      "a number from 0 to 0xffffff, or two with `/` between: value and mask");
}

std::vector<Row> Match::rows(const SwitchInfo& info) const {
  std::vector<Row> all = {common_row(*this)};
  // Each of the rows so far, once for each of the choices.
  const auto multiply = [&all](std::size_t choices, const std::function<void(Row&, std::size_t)>& choose) {
    std::vector<Row> more;
    for (const Row& row : all)
      for (std::size_t i = 0; i < choices; i++) choose(more.emplace_back(row), i);
    all = std::move(more);
  };
  if (!ports.empty())
    multiply(ports.size(), [&](Row& row, std::size_t i) {
      row.value.ingress_port = info.find(ports[i]);
      row.mask.ingress_port = 0xFF;
    });
  if (!opcodes.empty())
    multiply(opcodes.size(), [&](Row& row, std::size_t i) {
      const Masked opcode = parse_opcode(opcodes[i]).value_or(Masked{});
      row.value.opcode = static_cast<std::uint8_t>(opcode.value);
      row.mask.opcode = static_cast<std::uint8_t>(opcode.mask);
      flag(row, kHasBth);
    });
  const auto transport_port = [&](const std::string& text, std::array<std::uint8_t, 2> Key::*field) {
    const std::vector<Masked> masks = masks_of(text);
    multiply(masks.size(), [&](Row& row, std::size_t i) {
      set(row.value.*field, masks[i].value);
      set(row.mask.*field, masks[i].mask);
    });
  };
  transport_port(source_port, &Key::source_port);
  transport_port(destination_port, &Key::destination_port);
  return all;
}

std::size_t Match::row_count() const {
  return std::max<std::size_t>(ports.size(), 1) * std::max<std::size_t>(opcodes.size(), 1) *
         masks_of(source_port).size() * masks_of(destination_port).size();
}

}  // namespace rocebox::switch_model::acl
