// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/yaml_text.h"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <string_view>

#include "runtime/config/printable.h"

namespace rocebox::config {
namespace {

constexpr char kDelete = 0x7F;  // a control character that the Emitter escapes only together with all that is not ASCII

// In double quotes.
std::string in_quotes(const std::string& utf8) {
  YAML::Emitter out;
  if (utf8.find(kDelete) != std::string::npos) out << YAML::EscapeNonAscii;
  out << YAML::DoubleQuoted << utf8;
  return out.c_str();
}

}  // namespace

std::string yaml_text(const std::string& text) {
  if (printable(text) == text) {
    YAML::Emitter list;  // of one text: what is plain there is plain outside of a list
    list << YAML::Flow << YAML::BeginSeq << text << YAML::EndSeq;
    const std::string_view brackets = list.c_str();
    return std::string(brackets.substr(1, brackets.size() - 2));
  }
  std::string whole = "\"", run;
  const auto end_run = [&] {
    const std::string part = in_quotes(run);
    whole += part.substr(1, part.size() - 2);
    run.clear();
  };
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t size = utf8_bytes(rest);
    if (size == 0) {
      end_run();
      whole += rest[0];
    }
    run += rest.substr(0, size);
    rest.remove_prefix(size == 0 ? 1 : size);
  }
  end_run();
  return whole + '"';
}

}  // namespace rocebox::config
