// SPDX-License-Identifier: BSD-3-Clause
// A YAML document as a tree with positions, and the list of mistakes found in it.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/config/suggestion.h"

namespace rocebox::config {

/// Where something stands in the file; both from 1, 0 when unknown.
struct Place {
  int line = 0, column = 0;
  int setting = 0;  ///< what gives the value that stands there, see Mistakes::add_setting(); 0: it is written there

  bool is_known() const { return line != 0 || setting != 0; }
  bool operator==(const Place&) const = default;
};

/// Who says what stands there: "FILE:LINE:COLUMN", or "FILE" where the place is unknown. With the words of a command
/// line a place's line is the number of one of them, and its column a letter in it: "FILE: `WORD`". What a setting
/// gives names that, too: "FILE:LINE:COLUMN with SETTING".
std::string place_text(const std::string& file, Place place, const std::vector<std::string>& words = {},
                       const std::vector<std::string>& settings = {});

/// Every mistake of one configuration, in the order found; nothing starts while there is one.
class Mistakes {
 public:
  explicit Mistakes(std::string file) : file_(std::move(file)) {}
  /// Of a command line, see place_text().
  Mistakes(std::string file, std::vector<std::string> words) : file_(std::move(file)), words_(std::move(words)) {}
  /// Of a configuration that is loaded, with the settings that came into it.
  Mistakes(std::string file, std::vector<std::string> words, std::vector<std::string> settings)
      : file_(std::move(file)), words_(std::move(words)), settings_(std::move(settings)) {}
  void add(Place place, std::string message);
  /// What may give values in place of what is written, as messages have it: "`loss=1%`". Returns its number for
  /// Place::setting.
  int add_setting(std::string setting);
  /// Takes those of another file.
  void add(const Mistakes& other);
  /// What stands there is good, and has no effect: no mistake, but a note, unless it has one where else it is looked
  /// at: what is written once may be for several devices.
  void add_idle(Place place, std::string message);
  void add_effect(Place place);
  /// What else is to be said of whatever is a mistake at that place: "; write such as ...".
  void add_hint(Place place, std::string hint) { hints_.emplace_back(place, std::move(hint)); }
  /// "file:line:column: note: message" each.
  std::vector<std::string> notes() const;
  bool none() const { return lines_.empty(); }
  /// More are counted, not kept: nothing is gained by finding good words for them.
  bool full() const;
  /// Every call of add(), also those that repeat a mistake, which is told once.
  std::size_t count() const { return lines_.size() + more_ + repeated_; }
  /// "file:line:column: message", "file: `word`: message" or "file:line:column with `setting`: message", one a line,
  /// without a final newline. What one setting does wrong in several places is one line, with the first of them.
  std::string text() const;
  const std::string& file() const { return file_; }
  /// Where else in the same configuration something stands: "line 3", or the word: "`delay=1ms`".
  std::string line_text(Place place) const;
  const std::vector<std::string>& words() const { return words_; }
  const std::vector<std::string>& settings() const { return settings_; }

 private:
  std::string file_;
  std::vector<std::string> words_, settings_;
  struct Line {
    std::string file;
    Place place;
    std::string message;
    std::vector<Place> more{};  // places that have it by the same setting
  };
  bool repeats(const Line& line);
  std::string hint_at(const Line& line) const;
  std::vector<Line> lines_, idle_;
  std::vector<Place> effects_;
  std::vector<std::pair<Place, std::string>> hints_;
  std::size_t more_ = 0, repeated_ = 0;
};

struct Entry;

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  Place place;
  std::string scalar;          // kScalar, as written
  std::vector<Node> items;     // kList
  std::vector<Entry> entries;  // kMap, in the order written; keys differ

  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  bool is_map() const { return kind == Kind::kMap; }
};

struct Entry {
  std::string key;
  Place place;  // of the key
  Node value;
};

/// Puts a node and all within at one place.
void move_to(Node& node, Place place);

/// "a list", "a mapping", ... for messages.
std::string_view kind_name(Node::Kind kind);

/// Parses one YAML document. Syntax errors, duplicate keys, more than one document, anchors that expand beyond the
/// limits, and keys that are no plain words are added to `mistakes`. Total on all inputs.
Node parse_yaml(std::string_view text, Mistakes& mistakes);

/// Names stand in paths of the report and in `device.port`, so they are plain words: letters, digits, _ and -.
bool is_plain_name(std::string_view name);

}  // namespace rocebox::config
