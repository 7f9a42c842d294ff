// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/one_line.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocebox::config {
namespace {

constexpr const char* kFile = "command line";

Node scalar(std::string text, Place place) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.scalar = std::move(text);
  node.place = place;
  return node;
}

Node map(Place place) {
  Node node;
  node.kind = Node::Kind::kMap;
  node.place = place;
  return node;
}

Node& put(Node& parent, const std::string& key, Node value) {
  const Place place = value.place;
  return parent.entries.emplace_back(Entry{key, place, std::move(value)}).value;
}

Node* inner_of(Node& node, std::string_view key) { return const_cast<Node*>(std::as_const(node).find(key)); }

// From places in the value to places in the word.
void move_by(Node& node, Place word) {
  node.place = {word.line, word.column + std::max(0, node.place.column - 1)};
  for (Node& item : node.items) move_by(item, word);
  for (Entry& entry : node.entries) {
    entry.place = {word.line, word.column + std::max(0, entry.place.column - 1)};
    move_by(entry.value, word);
  }
}

// The document that the line stands for. A place is the number of the word, and the letter in it.
class Document {
 public:
  Document(const OneLine& line, const Registry& registry) : registry_(registry), root_(map({})) {
    std::vector<std::string> shown;
    for (const std::string& port : line.between) shown.push_back("--between " + port);
    for (const std::string& file : line.from) shown.push_back("--from " + file);
    shown.insert(shown.end(), line.words.begin(), line.words.end());
    mistakes_ = Mistakes(kFile, std::move(shown));
    Node ports = map({});
    for (const std::string& port : line.between)
      put(ports, kOneLinePorts[ports.entries.empty() ? 0 : 1], binding(port, next()));
    if (!line.from.empty()) put(ports, kOneLinePorts[0], captures(line.from));
    kernels_ = map({});
    for (const std::string& word : line.words) take(word, next());
    Node bump = map({});
    put(bump, "path", scalar(path_ + " <-> " + kOneLinePorts[1], {}));
    if (!kernels_.entries.empty()) put(bump, "kernels", std::move(kernels_));
    Node devices = map({});
    put(devices, "bump", std::move(bump));
    put(root_, "devices", std::move(devices));
    put(root_, "ports", std::move(ports));
  }
  const Node& root() const { return root_; }
  Mistakes& mistakes() { return mistakes_; }

 private:
  Place next() { return {++words_, 1}; }

  Node value(const std::string& text, Place place) {
    if (text.empty() || std::string_view("{[\"'").find(text[0]) == std::string_view::npos) return scalar(text, place);
    Mistakes own(fmt::format("{}: {}: its value", kFile, mistakes_.line_text(place)));
    Node node = parse_yaml(text, own);
    mistakes_.add(own);
    move_by(node, place);
    return node;
  }

  Node binding(const std::string& text, Place place) {
    if (text.starts_with('{')) return value(text, place);
    Node node = map(place);
    put(node, "af_packet", scalar(text, place));
    return node;
  }

  Node captures(const std::vector<std::string>& files) {
    Node list;
    list.kind = Node::Kind::kList;
    for (const std::string& file : files) list.items.push_back(scalar(file, next()));
    list.place = list.items[0].place;
    Node port = map(list.place), pcap = map(list.place);
    put(pcap, "in", std::move(list));
    put(port, "pcap", std::move(pcap));
    return port;
  }

  void take(const std::string& word, Place place) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) return option(word.substr(0, equals), word.substr(equals + 1), place);
    current_ = nullptr;
    if (!registry_.find(kKernelKind, word)) {
      std::vector<std::string> names;
      for (const Component* type : registry_.of_kind(kKernelKind)) names.emplace_back(type->name);
      mistakes_.add(place, fmt::format("there is no kernel `{}`{}", word, suggestion(word, names)));
      wrong_ = true;
      return;
    }
    wrong_ = false;
    std::string name = word;
    for (unsigned number = 2; kernels_.find(name); number++) name = fmt::format("{}_{}", word, number);
    path_ += " <-> " + name;
    current_ = &put(kernels_, name, map(place));
    if (name != word) put(*current_, "type", scalar(word, place));
  }

  void option(const std::string& key, const std::string& text, Place place) {
    if (wrong_) return;  // of a kernel that does not exist
    if (!current_)
      return mistakes_.add(
          place, fmt::format("`{}` is an option, and no kernel stands before it, as in `link {}={}`", key, key, text));
    Node* into = current_;
    std::size_t at = 0;
    for (std::size_t dot; (dot = key.find('.', at)) != std::string::npos; at = dot + 1) {
      const std::string group = key.substr(at, dot - at);
      Node* inner = inner_of(*into, group);
      if (!inner) inner = &put(*into, group, map(place));
      if (!inner->is_map()) return mistakes_.add(place, fmt::format("`{}` has a value already, and no options", group));
      into = inner;
    }
    const std::string last = key.substr(at);
    if (into->find(last)) return mistakes_.add(place, fmt::format("`{}` is given twice", key));
    put(*into, last, value(text, {place.line, place.column + static_cast<int>(key.size()) + 1}));
  }

  const Registry& registry_;
  Mistakes mistakes_{kFile};
  Node root_, kernels_;
  Node* current_ = nullptr;  // of kernels_; what comes is for it
  bool wrong_ = false;
  std::string path_ = kOneLinePorts[0];
  int words_ = 0;
};

}  // namespace

RunConfig load_one_line(const OneLine& line, Registry& registry) {
  Document document(line, registry);
  Mistakes& mistakes = document.mistakes();
  RunConfig config;
  if (mistakes.none()) config = load_node(document.root(), kFile, registry, mistakes);
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  config.origin = ConfigOrigin::kArguments;
  config.words = mistakes.words();
  config.path.clear();
  for (CaptureBinding& binding : config.captures) binding.in_place = "--from";
  return config;
}

}  // namespace rocebox::config
