// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <climits>
#include <map>
#include <optional>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "runtime/limits.h"

namespace rocebox::config {
namespace {

Place place_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

// Thrown inside parse_yaml only, to leave yaml-cpp's parser at a limit.
struct LimitReached {
  Place place;
  std::string message;
};

// What a copy of a node costs: its values, and a value more for each 64 bytes of text.
std::size_t cost_of(const Node& node) {
  std::size_t cost = 1 + node.scalar.size() / 64;
  for (const Node& item : node.items) cost += cost_of(item);
  for (const Entry& entry : node.entries) cost += cost_of(entry.value);
  return cost;
}

// Builds the tree from yaml-cpp's events. Aliases become copies, within kConfigNodesMax.
class Builder final : public YAML::EventHandler {
 public:
  Builder(Mistakes& mistakes, std::string_view text) : mistakes_(mistakes), text_(text) {}
  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node;
    node.place = place_of(mark);
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw LimitReached{place_of(mark), "an alias refers to the node that it stands in"};
    Node copy = found->second;
    nodes_ += cost_of(copy);
    add(std::move(copy), 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& value) override {
    Node node;
    node.kind = Node::Kind::kScalar;
    node.place = place_of(mark);
    node.scalar = value;
    if (mark.pos >= 0 && never_closed(text_.substr(std::min(text_.size(), static_cast<std::size_t>(mark.pos)))))
      mistakes_.add(node.place, "the quote that begins here is never closed");
    add(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::kList, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::kMap, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    bool has_key = false;
    Entry key;
    std::unordered_set<std::string> keys;
  };

  // yaml-cpp 0.7 takes the end of the file for the closing quote, and a forgotten one would swallow the rest.
  static bool never_closed(std::string_view text) {
    if (text.empty() || (text[0] != '\'' && text[0] != '"')) return false;
    for (std::size_t at = 1; at < text.size(); at++) {
      if (text[0] == '"' && text[at] == '\\')
        at++;
      else if (text[at] == text[0])
        return false;
    }
    return true;
  }

  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (stack_.size() >= kConfigDepthMax)
      throw LimitReached{place_of(mark), fmt::format("nested deeper than {} levels", kConfigDepthMax)};
    Open next{{}, anchor, false, {}, {}};
    next.node.kind = kind;
    next.node.place = place_of(mark);
    stack_.push_back(std::move(next));
  }
  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(done.node), done.anchor);
  }
  void add(Node node, YAML::anchor_t anchor) {
    if (++nodes_ > kConfigNodesMax) throw LimitReached{node.place, fmt::format("more than {} values", kConfigNodesMax)};
    if (anchor) anchors_[anchor] = node;
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == Node::Kind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      if (node.kind != Node::Kind::kScalar) mistakes_.add(node.place, "a key must be a plain word");
      parent.key.key = node.scalar;
      parent.key.place = node.place;
      parent.has_key = true;
    } else {
      parent.has_key = false;
      if (!parent.keys.insert(parent.key.key).second) {
        mistakes_.add(parent.key.place, fmt::format("`{}` is given twice", parent.key.key));
        return;
      }
      parent.key.value = std::move(node);
      parent.node.entries.push_back(std::move(parent.key));
      parent.key = {};
    }
  }

  Mistakes& mistakes_;
  std::string_view text_;
  Node root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t nodes_ = 0;
};

constexpr const char* kMissingColon = "YAML: a `:` is missing behind the key of this line";

// The line in which the parser gives up; past the end of the text where it does not, 0 where that is of several
// documents.
int line_of_failure(const std::string& text) {
  Mistakes ignored("");
  Builder builder(ignored, text);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    Builder second(ignored, text);
    if (parser.HandleNextDocument(second)) return 0;
  } catch (const YAML::Exception& error) {
    return place_of(error.mark).line;
  } catch (const LimitReached&) {
  }
  return INT_MAX;
}

constexpr std::string_view kBlanks = " \t\r\n";

// What stands in the line that begins at `begin`, without blanks and comment: [first, last).
struct LineContent {
  std::size_t first, last;
};
LineContent content_of_line(std::string_view text, std::size_t begin) {
  const std::string_view line = text.substr(begin, std::min(text.size(), text.find('\n', begin)) - begin);
  std::size_t last = line.find('#');
  while (last != std::string_view::npos && last > 0 && kBlanks.find(line[last - 1]) == std::string_view::npos)
    last = line.find('#', last + 1);
  last = line.substr(0, last).find_last_not_of(kBlanks) + 1;
  return {begin + std::min(last, line.find_first_not_of(kBlanks)), begin + last};
}

// The place of a key without its colon, where with one more colon there the text can be read further than to `failed`:
// in that line, or in the last one before it that has more than a comment.
std::optional<Place> missing_colon(std::string_view text, int failed) {
  std::vector<std::size_t> begins = {0};  // of lines up to that one
  while (static_cast<int>(begins.size()) < failed && text.find('\n', begins.back()) != std::string_view::npos)
    begins.push_back(text.find('\n', begins.back()) + 1);
  int tried = 0;
  for (auto line = static_cast<int>(begins.size()); line > 0 && tried < 2; line--) {
    const std::size_t begin = begins[static_cast<std::size_t>(line - 1)];
    const auto [first, last] = content_of_line(text, begin);
    if (first == last) continue;
    if (line < failed) tried = 2;
    std::string mended(text);
    mended.insert(last, ":");
    if (line_of_failure(mended) > failed) return Place{line, static_cast<int>(first - begin) + 1};
  }
  return {};
}

// What is wrong where the parser gives up. A key without its colon runs on into the next line, whose colon the parser
// then stumbles over; a comment between them ends it, and then it is no key of the mapping that it stands in.
void add_yaml_mistake(std::string_view text, const YAML::Exception& error, Mistakes& mistakes) {
  const Place failed = place_of(error.mark);
  const bool runs_on = error.msg == YAML::ErrorMsg::MAP_VALUE;
  const bool ends = error.msg == YAML::ErrorMsg::END_OF_MAP || error.msg == YAML::ErrorMsg::END_OF_SEQ;
  const std::optional<Place> colon = runs_on || ends ? missing_colon(text, failed.line) : std::nullopt;
  if (!colon)
    mistakes.add(failed, "YAML: " + error.msg);
  else if (runs_on && colon->line < failed.line)
    mistakes.add(*colon,
                 fmt::format("YAML: a `:` is missing, and line {} is read as going on with this one", failed.line));
  else
    mistakes.add(*colon, kMissingColon);
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

void move_to(Node& node, Place place) {
  node.place = place;
  for (Node& item : node.items) move_to(item, place);
  for (Entry& entry : node.entries) entry.place = place, move_to(entry.value, place);
}

std::string_view kind_name(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return "a single value";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a mapping";
  }
  return "";
}

Node parse_yaml(std::string_view text, Mistakes& mistakes) {
  Builder builder(mistakes, text);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return {};
    Node root = builder.take();
    Builder second(mistakes, text);
    if (!parser.HandleNextDocument(second)) return root;
    // A key in the first line without its colon, which a comment ends, is a document of its own.
    const bool is_key = root.kind == Node::Kind::kScalar && missing_colon(text, root.place.line);
    mistakes.add(is_key ? root.place : Place(), is_key ? kMissingColon : "more than one YAML document; give one");
    return root;
  } catch (const YAML::Exception& error) {
    add_yaml_mistake(text, error, mistakes);
  } catch (const LimitReached& limit) {
    mistakes.add(limit.place, limit.message);
  }
  return {};
}

bool is_plain_name(std::string_view name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !name.empty() && name.find_first_not_of(kLetters) == std::string_view::npos && name != "null";
}

}  // namespace rocebox::config
