// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/document.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <unordered_set>

#include "runtime/kernel/kernel.h"
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

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
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
    if (parser.HandleNextDocument(second)) mistakes.add({}, "more than one YAML document; give one");
    return root;
  } catch (const YAML::Exception& error) {
    mistakes.add(place_of(error.mark), "YAML: " + error.msg);
  } catch (const LimitReached& limit) {
    mistakes.add(limit.place, limit.message);
  }
  return {};
}

bool is_plain_name(std::string_view name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !name.empty() && name.find_first_not_of(kLetters) == std::string_view::npos && name != "null";
}

namespace {

// The descriptor of this process that `path` names, or -1. To open a named pipe by /dev/fd/N again would wait for
// another writer, although all that was written may be there.
int own_descriptor(std::string_view path) {
  if (path == "-" || path == "/dev/stdin") return STDIN_FILENO;
  constexpr std::string_view kFolder = "/dev/fd/";
  if (!path.starts_with(kFolder)) return -1;
  const std::string_view number = path.substr(kFolder.size());
  int descriptor = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), descriptor);
  return error == std::errc() && end == number.data() + number.size() ? descriptor : -1;
}

}  // namespace

std::string read_text_file(const std::string& path, Pipes pipes) {
  const auto cannot = [&path](const std::string& why) {
    return ConfigError(fmt::format("{}: cannot be read: {}", shown_file(path), why));
  };
  const int own = pipes == Pipes::kTaken ? own_descriptor(path) : -1;
  // Nobody may write into a pipe, and who may not wait for it must not even wait for it to open.
  const int descriptor =
      own >= 0 ? dup(own) : open(path.c_str(), O_RDONLY | O_CLOEXEC | (pipes == Pipes::kRefused ? O_NONBLOCK : 0));
  if (descriptor < 0) throw cannot(std::strerror(errno));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&descriptor, [](const int* open) { close(*open); });
  struct stat status {};
  if (pipes == Pipes::kRefused && fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode) &&
      !S_ISDIR(status.st_mode))
    throw cannot("is a pipe or a device, and a regular file is needed here");
  std::string text(kConfigBytesMax + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(descriptor, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw cannot(std::strerror(errno));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  if (text.size() > kConfigBytesMax)
    throw ConfigError(fmt::format("{}: larger than {} bytes: not a configuration", shown_file(path), kConfigBytesMax));
  return text;
}

std::string shown_file(const std::string& path) { return path == "-" ? "standard input" : path; }

std::string beside(const std::string& file, const std::string& path) {
  if (path.empty() || path == "-" || path == "-.pcapng" || path.starts_with('/')) return path;
  for (const char* descriptors : {"/dev/fd/", "/dev/stdin", "/proc/"})
    if (file.starts_with(descriptors)) return std::filesystem::path(path).lexically_normal().string();
  return (std::filesystem::path(file).parent_path() / path).lexically_normal().string();
}

std::vector<std::string> data_folders(const std::string& built, const std::string& installed) {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return {(own / built).string(), (own / "../share/rocebox" / installed).lexically_normal().string()};
}

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

// Words that begin as `word` does, up to its first underscore: `icrc_failures` for `icrc_bad`. Few of them, or none.
static std::vector<std::string> same_beginning(std::string_view word, const std::vector<std::string>& words) {
  constexpr std::size_t kBeginningMin = 3, kWordsMax = 4;
  const std::size_t end = word.find('_');
  if (end == std::string_view::npos || end < kBeginningMin) return {};
  std::vector<std::string> found;
  for (const std::string& candidate : words)
    if (candidate.starts_with(word.substr(0, end + 1))) found.push_back(candidate);
  return found.size() <= kWordsMax ? found : std::vector<std::string>();
}

std::string suggestion(std::string_view word, const std::vector<std::string>& words) {
  if (const std::string_view near = nearest(word, words); !near.empty())
    return fmt::format("; did you mean `{}`?", near);
  if (const std::vector<std::string> kin = same_beginning(word, words); !kin.empty())
    return fmt::format("; did you mean `{}`?", fmt::join(kin, "` or `"));
  if (words.empty() || words.size() > 12) return "";
  return fmt::format("; known: {}", fmt::join(words, ", "));
}

}  // namespace rocebox::config
