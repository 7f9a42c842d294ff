// SPDX-License-Identifier: BSD-3-Clause
// Mailbox: messages of the host to a PCC program, whose form is the program's, and what it responds.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernel/report.h"
#include "runtime/packet/packet.h"

namespace rocebox::nic_model::pcc {

using MailBytes = std::vector<std::uint8_t>;

/// The longest message, and the longest response: a page.
inline constexpr std::size_t kMailBytesMax = 4096;

/// Messages of a configuration: each change of it may add some.
inline constexpr std::size_t kMailsMax = 1024;

/// Bytes as people write them, `01 00 2f`; empty: that is something else.
std::optional<MailBytes> mail_bytes(std::string_view text);

/// Those of `after` that were not at their place before: what the host says when its configuration changes.
std::vector<MailBytes> new_mails(const std::vector<std::string>& before, const std::vector<std::string>& after);

class Mailbox {
 public:
  using Handler = int (*)(void*, std::uint32_t, std::uint32_t, void*, std::uint32_t*);
  /// Null: the program takes no messages.
  explicit Mailbox(Handler handler) : handler_(handler) {}
  bool is_there() const { return handler_ != nullptr; }

  /// One message: begin(), then deliver() on the program's stack, then end().
  void begin(const MailBytes& message);
  bool deliver();
  /// Whether the program wrote or said more than there is room for.
  bool is_overrun() const;
  void end(Nanos now, bool is_taken);
  void report(Report& report) const;

 private:
  struct Row {
    Nanos at;
    std::string request, response;
    bool is_taken;
  };
  Handler handler_;
  MailBytes request_, response_;  // the response with a guard behind it; made by the first message
  std::uint32_t request_bytes_ = 0, response_bytes_ = 0;
  std::vector<Row> rows_;
};

}  // namespace rocebox::nic_model::pcc
