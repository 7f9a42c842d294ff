// SPDX-License-Identifier: BSD-3-Clause
// Text as a value of a YAML document.
#pragma once
#include <string>

namespace rocebox::config {

/// As YAML::Emitter writes it: plain where that is read back as the same text, within a list in brackets too, otherwise
/// quoted. Always one line without control characters, so that it may go to a terminal. Bytes that are no UTF-8, as
/// names of files may have, stay as they are: YAML cannot escape them, and the Emitter would replace them.
std::string yaml_text(const std::string& text);

}  // namespace rocebox::config
