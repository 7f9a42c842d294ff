// SPDX-License-Identifier: BSD-3-Clause
// The known word that was meant by one that is not known.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rocebox::config {

/// The word nearest to `word` if it is near enough to be a slip of the pen, else empty.
std::string_view nearest(std::string_view word, const std::vector<std::string>& words);
/// "; did you mean `x`?", the nearest or the few that begin with the same part of a name; or a list of what is known
/// when there are no more than `listed` of them.
std::string suggestion(std::string_view word, const std::vector<std::string>& words, std::size_t listed = 12);

}  // namespace rocebox::config
