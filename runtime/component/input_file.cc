// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/component/input_file.h"

#include <algorithm>

namespace rocebox {

bool WordLines::next(std::vector<Word>& words) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  words.clear();
  while (words.empty() && !rest_.empty()) {
    line_++;
    const std::size_t end = rest_.find('\n');
    const std::string_view whole = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    const std::string_view line = whole.substr(0, whole.find('#'));
    for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
      const std::size_t stop = std::min(line.find_first_of(kBlanks, at), line.size());
      words.push_back({line.substr(at, stop - at), line_, static_cast<int>(at) + 1});
      at = line.find_first_not_of(kBlanks, stop);
    }
  }
  return !words.empty();
}

}  // namespace rocebox
