// SPDX-License-Identifier: BSD-3-Clause
// Text that came from a file, a network or a command line, made fit for a terminal.
#pragma once
#include <string>
#include <string_view>

namespace rocebox::config {

/// Bytes of the UTF-8 sequence that a text begins with; 0 where it is none.
std::size_t utf8_bytes(std::string_view text);

/// The text with every control character (ESC, a line's end, C1 controls), and every byte that is no UTF-8, written as
/// `\x1b`: it can neither move a terminal's cursor nor look like a line of ours.
std::string printable(std::string_view text);
/// The same for each of several lines.
std::string printable_lines(std::string_view text);

}  // namespace rocebox::config
