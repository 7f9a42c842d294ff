// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/pcc/mailbox.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <span>

namespace rocebox::nic_model::pcc {
namespace {

constexpr std::size_t kMailsKept = 64;       // in the report, the first ones
constexpr std::size_t kMailBytesShown = 64;  // of each
constexpr std::size_t kMailGuardBytes = 64;
constexpr std::uint8_t kMailGuard = 0xA6;

std::string mail_text(std::span<const std::uint8_t> bytes) {
  const std::span<const std::uint8_t> shown = bytes.first(std::min(bytes.size(), kMailBytesShown));
  return fmt::format("{:02x}{}", fmt::join(shown, " "), shown.size() < bytes.size() ? " ..." : "");
}

}  // namespace

std::optional<MailBytes> mail_bytes(std::string_view text) {
  MailBytes bytes;
  while (!text.empty()) {
    if (text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    std::uint8_t byte = 0;
    const char* const end = text.data() + std::min<std::size_t>(2, text.size());
    const auto [at, error] = std::from_chars(text.data(), end, byte, 16);
    if (error != std::errc() || at - text.data() != 2 || bytes.size() == kMailBytesMax) return {};
    bytes.push_back(byte);
    text.remove_prefix(2);
  }
  if (bytes.empty()) return {};
  return bytes;
}

std::vector<MailBytes> new_mails(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  std::vector<MailBytes> mails;
  for (std::size_t i = 0; i < after.size(); i++)
    if (i >= before.size() || before[i] != after[i]) mails.push_back(mail_bytes(after[i]).value());
  return mails;
}

void Mailbox::begin(const MailBytes& message) {
  request_.resize(kMailBytesMax);
  response_.assign(kMailBytesMax + kMailGuardBytes, 0);
  std::ranges::copy(message, request_.begin());
  std::fill(response_.begin() + kMailBytesMax, response_.end(), kMailGuard);
  request_bytes_ = static_cast<std::uint32_t>(message.size());
  response_bytes_ = 0;
}

bool Mailbox::deliver() {
  return handler_(request_.data(), request_bytes_, kMailBytesMax, response_.data(), &response_bytes_) == 0;
}

bool Mailbox::is_overrun() const {
  return response_bytes_ > kMailBytesMax || std::any_of(response_.begin() + kMailBytesMax, response_.end(),
                                                        [](std::uint8_t byte) { return byte != kMailGuard; });
}

void Mailbox::end(Nanos now, bool is_taken) {
  if (rows_.size() == kMailsKept) return;
  const std::span<const std::uint8_t> request(request_), response(response_);
  rows_.push_back(
      {now, mail_text(request.first(request_bytes_)), mail_text(response.first(response_bytes_)), is_taken});
}

void Mailbox::report(Report& report) const {
  if (rows_.empty()) return;
  report.table("pcc_mailbox", rows_.size(), [&](Report& r, std::size_t i) {
    r.duration("at", rows_[i].at);
    r.text("request", rows_[i].request);
    r.flag("is_taken", rows_[i].is_taken);
    r.text("response", rows_[i].response);
  });
}

}  // namespace rocebox::nic_model::pcc
