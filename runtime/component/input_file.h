// SPDX-License-Identifier: BSD-3-Clause
// Files that options name and read: what stands in them, taken apart line by line.
#pragma once
#include <charconv>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rocebox {

/// A file that an option names (Fields::file), and what stands in it.
struct InputFile {
  std::string path;      ///< as written; empty: none
  std::string text;      ///< what stands in it
  bool is_read = false;  ///< else nothing is known of it: files are not followed, or it cannot be read
};

/// A word of a line, and where it begins; both from 1.
struct Word {
  std::string_view text;
  int line, column;
};

/// Told of everything that is wrong with a file.
using OnMistake = std::function<void(int line, int column, const std::string& why)>;

/// The lines of a text that have words, which blanks part. What stands behind a `#` is a comment.
class WordLines {
 public:
  /// `text` outlives this and its words.
  explicit WordLines(std::string_view text) : rest_(text) {}
  /// The next one; false at the end.
  bool next(std::vector<Word>& words);
  /// The line that the last words stand in.
  int line() const { return line_; }

 private:
  std::string_view rest_;
  int line_ = 0;
};

/// The number that all of a word is; false: it is none, or too large.
template <class T>
bool number_of(std::string_view word, T& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

}  // namespace rocebox
