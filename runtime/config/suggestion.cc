// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/suggestion.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocebox::config {
namespace {

// Insertions, deletions, changes and swaps of neighbours that lead from one word to the other (Damerau).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); i++) {
    for (std::size_t j = 0; j <= b.size(); j++) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

// Words that begin as `word` does, up to its first underscore: `icrc_failures` for `icrc_bad`, and
// `goodput_bits_per_second` for `goodput`. Few of them, or none.
std::vector<std::string> same_beginning(std::string_view word, const std::vector<std::string>& words) {
  constexpr std::size_t kBeginningMin = 3, kWordsMax = 4;
  const std::string beginning = fmt::format("{}_", word.substr(0, word.find('_')));
  if (beginning.size() <= kBeginningMin) return {};
  std::vector<std::string> found;
  for (const std::string& candidate : words)
    if (candidate.starts_with(beginning)) found.push_back(candidate);
  return found.size() <= kWordsMax ? found : std::vector<std::string>();
}

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string>& words) {
  constexpr std::size_t kWordBytesMax = 64;  // no name of ours is longer, and the distance takes length squared
  if (word.size() > kWordBytesMax) return {};
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;  // a third of the letters may be wrong
  for (const std::string& candidate : words) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < least) least = distance, best = candidate;
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& words, std::size_t listed) {
  if (const std::string_view near = nearest(word, words); !near.empty())
    return fmt::format("; did you mean `{}`?", near);
  if (const std::vector<std::string> kin = same_beginning(word, words); !kin.empty())
    return fmt::format("; did you mean `{}`?", fmt::join(kin, "` or `"));
  if (words.empty() || words.size() > listed) return "";
  return fmt::format("; known: {}", fmt::join(words, ", "));
}

}  // namespace rocebox::config
