// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/step.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "runtime/roce/parse.h"

namespace rocebox::conformance {
namespace {

constexpr std::pair<const char*, std::uint8_t> kOpcodes[] = {
    {"SEND_FIRST", IBV_OPCODE_SEND_FIRST},
    {"SEND_MIDDLE", IBV_OPCODE_SEND_MIDDLE},
    {"SEND_LAST", IBV_OPCODE_SEND_LAST},
    {"SEND_LAST_IMM", IBV_OPCODE_SEND_LAST_WITH_IMMEDIATE},
    {"SEND_ONLY", IBV_OPCODE_SEND_ONLY},
    {"SEND_ONLY_IMM", IBV_OPCODE_SEND_ONLY_WITH_IMMEDIATE},
    {"SEND_LAST_INV", 0x16},  // with invalidate: verbs have no names for these
    {"SEND_ONLY_INV", 0x17},
    {"WRITE_FIRST", IBV_OPCODE_RDMA_WRITE_FIRST},
    {"WRITE_MIDDLE", IBV_OPCODE_RDMA_WRITE_MIDDLE},
    {"WRITE_LAST", IBV_OPCODE_RDMA_WRITE_LAST},
    {"WRITE_LAST_IMM", IBV_OPCODE_RDMA_WRITE_LAST_WITH_IMMEDIATE},
    {"WRITE_ONLY", IBV_OPCODE_RDMA_WRITE_ONLY},
    {"WRITE_ONLY_IMM", IBV_OPCODE_RDMA_WRITE_ONLY_WITH_IMMEDIATE},
    {"READ_REQUEST", IBV_OPCODE_RDMA_READ_REQUEST},
    {"READ_RESPONSE_FIRST", IBV_OPCODE_RDMA_READ_RESPONSE_FIRST},
    {"READ_RESPONSE_MIDDLE", IBV_OPCODE_RDMA_READ_RESPONSE_MIDDLE},
    {"READ_RESPONSE_LAST", IBV_OPCODE_RDMA_READ_RESPONSE_LAST},
    {"READ_RESPONSE_ONLY", IBV_OPCODE_RDMA_READ_RESPONSE_ONLY},
    {"ATOMIC_ACK", IBV_OPCODE_ATOMIC_ACKNOWLEDGE},
    {"COMPARE_SWAP", IBV_OPCODE_COMPARE_SWAP},
    {"FETCH_ADD", IBV_OPCODE_FETCH_ADD},
};
// Names of what AETH says.
constexpr std::pair<const char*, std::uint8_t> kSyndromes[] = {
    {"ACK", 0x1F},
    {"RNR_NAK", 0x20},
    {"NAK_PSN", 0x60},
    {"NAK_INVALID_REQUEST", 0x61},
    {"NAK_REMOTE_ACCESS", 0x62},
    {"NAK_REMOTE_OPERATIONAL", 0x63},
    {"NAK_INVALID_RD_REQUEST", 0x64},
    {"NAK_RESERVED", 0x65},
    {"ACK_RESERVED", 0x40},
};
constexpr std::pair<const char*, ibv_wc_status> kStatuses[] = {
    {"SUCCESS", IBV_WC_SUCCESS},
    {"LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR},
    {"LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR},
    {"LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR},
    {"WR_FLUSH_ERR", IBV_WC_WR_FLUSH_ERR},
    {"BAD_RESP_ERR", IBV_WC_BAD_RESP_ERR},
    {"REM_INV_REQ_ERR", IBV_WC_REM_INV_REQ_ERR},
    {"REM_ACCESS_ERR", IBV_WC_REM_ACCESS_ERR},
    {"REM_OP_ERR", IBV_WC_REM_OP_ERR},
    {"RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR},
    {"RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR},
};

std::string name_of(std::uint8_t opcode) {
  for (const auto& [name, value] : kOpcodes)
    if (value == (opcode & 0x1F)) return name;
  return fmt::format("OPCODE_{:#04x}", opcode);
}

// ACKs count credits in their lower bits, and RNR NAKs time.
std::string acknowledgement(const roce::Aeth& aeth) {
  const roce::AethKind kind = roce::aeth_kind(aeth.syndrome);
  const unsigned kept = kind == roce::AethKind::kNak ? aeth.syndrome : aeth.syndrome & 0xE0u;
  for (const auto& [name, value] : kSyndromes)
    if (kept == (kind == roce::AethKind::kNak ? value : value & 0xE0u)) return name;
  return fmt::format("SYNDROME_{:#04x}", aeth.syndrome);
}

}  // namespace

std::uint64_t to_number(const std::string& text) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0') throw std::runtime_error("no number: " + text);
  return static_cast<std::uint64_t>(value);
}

std::int64_t to_nanos(const std::string& text) {
  std::int64_t number = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(at, text.data() + text.size());
  const std::int64_t scale = unit == "us" ? 1'000 : unit == "ms" ? 1'000'000 : unit == "s" ? 1'000'000'000 : 0;
  if (error != std::errc() || scale == 0) throw std::runtime_error("no duration: " + text);
  return number * scale;
}

Step::Step(const std::string& text) {
  std::istringstream words(text);
  words >> name;
  bool is_first = true;
  for (std::string word; words >> word; is_first = false) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos)
      values[word.substr(0, equals)] = word.substr(equals + 1);
    else if (is_first && word[0] >= '0' && word[0] <= '9')
      psn = static_cast<std::uint32_t>(to_number(word));
    else
      values[word] = "";
  }
}

std::uint64_t Step::number(const std::string& key, std::uint64_t otherwise) const {
  const auto found = values.find(key);
  return found == values.end() ? otherwise : to_number(found->second);
}

std::string Step::text(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() ? "" : found->second;
}

std::uint8_t opcode_of(const std::string& name, std::uint8_t service, std::uint8_t& syndrome) {
  if (name == "CNP") return roce::kOpcodeCnp;
  for (const auto& [known, value] : kSyndromes)
    if (name == known) {
      syndrome = value;
      return IBV_OPCODE_RC_ACKNOWLEDGE;
    }
  for (const auto& [known, value] : kOpcodes)
    if (name == known) {
      syndrome = 0x1F;
      return static_cast<std::uint8_t>(service | value);
    }
  throw std::runtime_error("no packet is called " + name);
}

std::string text_of(Packet packet, std::uint64_t remote) {
  roce::parse(packet);
  if (!roce::is_roce(packet)) return "no RoCE packet";
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  const auto psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  const roce::Aeth* aeth = roce::aeth(packet);
  const bool acknowledges = packet.meta().opcode == IBV_OPCODE_RC_ACKNOWLEDGE;
  std::string text = fmt::format("{} {}", acknowledges ? acknowledgement(*aeth) : name_of(packet.meta().opcode), psn);
  if (aeth) text += fmt::format(" msn={}", static_cast<std::uint32_t>(aeth->msn));
  if (acknowledges && roce::aeth_kind(aeth->syndrome) == roce::AethKind::kRnrNak)
    text += fmt::format(" timer={}", roce::aeth_value(aeth->syndrome));
  if (const roce::AtomicAckEth* atomic = roce::atomic_ack_eth(packet))
    text += fmt::format(" original={}", atomic->original.get());
  if (packet.meta().opcode != IBV_OPCODE_RC_RDMA_READ_REQUEST && info.has(roce::kHasPayload))
    text += fmt::format(" bytes={}", packet.meta().payload_bytes);
  if (const roce::Reth* reth = roce::reth(packet))
    text += fmt::format(" length={} at={}", reth->dma_length.get(), reth->virtual_address.get() - remote);
  return text;
}

std::string status_name(ibv_wc_status status) {
  for (const auto& [name, value] : kStatuses)
    if (value == status) return name;
  return fmt::format("STATUS_{}", static_cast<int>(status));
}

unsigned right_of(const std::string& name) {
  if (name == "write") return IBV_ACCESS_REMOTE_WRITE;
  if (name == "read") return IBV_ACCESS_REMOTE_READ;
  if (name == "atomic") return IBV_ACCESS_REMOTE_ATOMIC;
  throw std::runtime_error("no right is called " + name);
}

}  // namespace rocebox::conformance
