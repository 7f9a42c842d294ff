// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/config/units.h"
#include "runtime/kernel/kernel.h"
#include "runtime/roce/address.h"
#include "runtime/roce/parse.h"

namespace rocebox {
namespace {

roce::IpAddress address_or_throw(const std::string& text) {
  const auto address = roce::parse_address(text);
  if (!address) throw ConfigError(fmt::format("trace filter: `{}` is no IP address", text));
  return *address;
}

// Whether a list of values could be one 24-bit number, as people write it: "9,524,366".
bool reads_as_one_number(std::string_view values) {
  constexpr std::int64_t kMax = 0xFFFFFF;
  std::int64_t number = 0;
  for (bool first = true;; first = false) {
    const std::size_t comma = values.find(',');
    const std::string_view group = values.substr(0, comma);
    const bool size_fits = first ? group.size() <= 3 : group.size() == 3;
    if (group.empty() || !size_fits || group.find_first_not_of("0123456789") != std::string_view::npos) return false;
    for (char digit : group) number = number * 10 + (digit - '0');
    if (number > kMax || (first && group[0] == '0')) return false;
    if (comma == std::string_view::npos) return !first;
    values.remove_prefix(comma + 1);
  }
}

// "9,524,366" -> "9524366", or with a word for each value: "psn=9 psn=524 psn=366".
std::string joined(std::string_view values, std::string_view between) {
  std::string text;
  for (char c : values) {
    if (c == ',')
      text += between;
    else
      text += c;
  }
  return text;
}

}  // namespace

TraceFilter::TraceFilter(const std::string& text) {
  std::string_view rest = text;
  while (true) {
    const std::size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    const std::string word(rest.substr(0, rest.find(' ')));
    rest.remove_prefix(word.size());
    if (word == "all") {
      all_ = true;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals), values = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "src")
      source_ = address_or_throw(values);
    else if (key == "dst")
      destination_ = address_or_throw(values);
    else if (key == "qpn" || key == "psn" || key == "opcode") {
      add_values(word, key, values);
    } else {
      throw ConfigError(
          fmt::format("trace filter: unknown word `{}`; known: qpn=, psn=, opcode=, src=, dst=, all", word));
    }
  }
  if (!all_ && qpns_.empty() && psns_.empty() && opcodes_.empty() && !source_ && !destination_)
    throw ConfigError("trace filter: empty; write such as `qpn=0x11 psn=100-120`, or `all`");
}

void TraceFilter::add_values(const std::string& word, const std::string& key, const std::string& values) {
  if (key != "opcode" && reads_as_one_number(values))
    throw ConfigError(fmt::format("trace filter: `{}` may be one number or a list; write `{}={}`, or `{}={}`", word,
                                  key, joined(values, ""), key, joined(values, " " + key + "=")));
  auto& spans = key == "qpn" ? qpns_ : key == "psn" ? psns_ : opcodes_;
  for (std::size_t at = 0; at <= values.size();) {
    const std::size_t comma = std::min(values.find(',', at), values.size());
    const std::string item = values.substr(at, comma - at);
    const std::size_t dash = item.find('-');
    const auto first = config::parse_integer(item.substr(0, dash));
    const auto last = dash == std::string::npos ? first : config::parse_integer(item.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < 0 || *first > 0xFFFFFF || *last > 0xFFFFFF)
      throw ConfigError(fmt::format(
          "trace filter: `{}` needs numbers up to 0xffffff, such as `{}=0x11` or `{}=100-120`", word, key, key));
    spans.push_back({static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*last)});
    at = comma + 1;
  }
}

bool TraceFilter::within(const std::vector<Span>& spans, std::uint32_t value) {
  if (spans.empty()) return true;
  return std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
    return span.first <= span.last ? value >= span.first && value <= span.last
                                   : value >= span.first || value <= span.last;
  });
}

bool TraceFilter::matches(Packet packet) const {
  const PacketMeta& meta = packet.meta();
  if (!opcodes_.empty() && (!meta.bth_offset || !within(opcodes_, meta.opcode))) return false;
  if (!qpns_.empty() || !psns_.empty()) {
    if (!roce::has_qpn_and_psn(packet)) return false;
    const roce::Bth& bth = roce::bth(packet);
    if (!within(qpns_, static_cast<std::uint32_t>(bth.destination_qp)) ||
        !within(psns_, static_cast<std::uint32_t>(bth.psn)))
      return false;
  }
  if (!source_ && !destination_) return true;
  if (meta.ip_version == 0) return false;
  const roce::Addresses addresses = roce::addresses(packet);
  return (!source_ || *source_ == addresses.source) && (!destination_ || *destination_ == addresses.destination);
}

std::string_view trace_verdict_name(TraceVerdict verdict) {
  constexpr std::string_view kNames[] = {"arrive", "pass", "send", "drop", "hold", "emit", "leave", "note"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string trace_line(const TraceEvent& event, std::string_view device, std::string_view port_name,
                       std::string_view counter_name) {
  std::string where(device);
  if (!event.stage.empty()) where += fmt::format(".{}", event.stage);
  std::string what(trace_verdict_name(event.verdict));
  switch (event.verdict) {
    case TraceVerdict::kDrop:
      what += fmt::format(" {}", counter_name);
      break;
    case TraceVerdict::kArrive:
    case TraceVerdict::kLeave:
      what += fmt::format(" {}", port_name);
      break;
    case TraceVerdict::kSend:
    case TraceVerdict::kEmit:
      what += fmt::format(" {}", event.port);
      break;
    case TraceVerdict::kNote:
      what = event.note;
      break;
    default:
      break;
  }
  std::string packet = fmt::format("#{}{}", event.info.identity, event.info.made ? " made" : "");
  if (event.info.has_opcode) packet += fmt::format(" {}", roce::opcode_text(event.info.opcode));
  if (event.info.has_qpn_and_psn) packet += fmt::format(" qpn {:#x} psn {}", event.info.qpn, event.info.psn);
  return fmt::format("{:>14.9f}  {:<20} {:<24} {}", static_cast<double>(event.at) / 1e9, where, what, packet);
}

}  // namespace rocebox
