// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/topology/ns3_topology.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/component/component.h"
#include "runtime/config/units.h"
#include "runtime/kernel/rate_queue.h"

namespace rocebox::topology {
namespace {

// More than a topology can have, see runtime/config/topology.cc: it is told there, in words of its own.
constexpr std::uint32_t kNodesMax = 1 << 17;

class Parser {
 public:
  Parser(std::string_view text, const OnMistake& mistake) : lines_(text), mistake_(mistake) {}

  Graph parse() {
    Graph graph;
    if (!read_head() || !read_switches() || !read_links(graph)) return {};
    return check(graph) ? graph : Graph{};
  }

 private:
  bool fail(const Word& word, const std::string& why) {
    mistake_(word.line, word.column, why);
    return false;
  }
  bool fail_at_end(const std::string& why) {
    mistake_(std::max(1, lines_.line()), 1, why);
    return false;
  }

  bool read_head() {
    if (!lines_.next(words_)) return fail_at_end("is empty: expected `NODES SWITCHES LINKS`");
    std::uint32_t* const counts[] = {&nodes_, &switches_, &links_};
    if (words_.size() != 3) return fail(words_[0], "expected `NODES SWITCHES LINKS`");
    for (std::size_t i = 0; i < 3; i++)
      if (!number_of(words_[i].text, *counts[i]) || *counts[i] > kNodesMax)
        return fail(words_[i], fmt::format("expected a number up to {}, found `{}`", kNodesMax, words_[i].text));
    if (switches_ > nodes_) return fail(words_[1], fmt::format("{} of {} nodes cannot be switches", switches_, nodes_));
    switching_.resize(nodes_);
    return true;
  }

  bool read_switches() {
    bool good = true;
    for (std::uint32_t left = switches_; left > 0;) {
      if (!lines_.next(words_)) return fail_at_end(fmt::format("ends where {} more switches should be", left));
      for (const Word& word : words_) {
        std::uint32_t node = 0;
        if (left == 0) return fail(word, fmt::format("`{}` is behind the last of {} switches", word.text, switches_));
        left--;
        if (!read_node(word, node)) {
          good = false;
        } else if (switching_[node]) {
          good = fail(word, fmt::format("node {} is a switch already", node));
        }
        if (node < nodes_) switching_[node] = true;
      }
    }
    return good;
  }

  bool read_node(const Word& word, std::uint32_t& node) {
    if (number_of(word.text, node) && node < nodes_) return true;
    fail(word, fmt::format("expected the number of a node, 0 to {}, found `{}`", std::int64_t{nodes_} - 1, word.text));
    node = UINT32_MAX;
    return false;
  }

  bool read_links(Graph& graph) {
    for (std::uint32_t i = 0; i < nodes_; i++) graph.add(fmt::format("{}{}", switching_[i] ? 's' : 'h', i), 1);
    bool good = true;
    for (std::uint32_t left = links_; left > 0; left--) {
      if (!lines_.next(words_)) return fail_at_end(fmt::format("ends where {} more links should be", left));
      good = read_link(graph) && good;
    }
    return good;
  }

  bool read_link(Graph& graph) {
    if (words_.size() != 5) return fail(words_[0], "expected `NODE NODE RATE DELAY LOSS`");
    std::uint32_t a = 0, b = 0;
    Wire wire;
    bool good = read_node(words_[0], a);
    good = read_node(words_[1], b) && good;
    const auto rate = config::parse_rate(words_[2].text);
    if (!rate || *rate < kRateMin || *rate > kRateMax)
      good = fail(words_[2], fmt::format("expected a rate, such as 100Gbps, found `{}`", words_[2].text));
    const auto delay = config::parse_duration(words_[3].text);
    if (!delay || *delay < 0 || *delay > kSecond)
      good = fail(words_[3], fmt::format("expected a delay up to 1s, such as 1000ns, found `{}`", words_[3].text));
    if (!number_of(words_[4].text, wire.loss) || !(wire.loss >= 0 && wire.loss <= 1))
      good = fail(words_[4], fmt::format("expected a share of packets from 0 to 1, found `{}`", words_[4].text));
    if (!good) return false;
    if (a == b) return fail(words_[1], fmt::format("node {} cannot be joined to itself", a));
    for (const Graph::Neighbor& other : graph.nodes[a].ports)
      if (other.node == b) return fail(words_[1], fmt::format("nodes {} and {} are joined already", a, b));
    wire.bits_per_second = *rate;
    wire.delay = *delay;
    try {
      graph.join(a, b, wire);
    } catch (const ConfigError& error) {
      return fail(words_[0], error.what());
    }
    return true;
  }

  // A host has one port.
  bool check(Graph& graph) {
    bool good = true;
    for (std::uint32_t i = 0; i < nodes_; i++) {
      if (switching_[i]) continue;
      graph.nodes[i].tier = 0;
      if (const std::size_t ports = graph.nodes[i].ports.size(); ports != 1)
        good = fail_at_end(fmt::format("node {} is a host with {} links, and a host has one", i, ports));
    }
    if (graph.hosts() == 0) good = fail_at_end("has no host: every node is a switch");
    set_tiers(graph);
    return good;
  }

  WordLines lines_;
  const OnMistake& mistake_;
  std::vector<Word> words_;
  std::uint32_t nodes_ = 0, switches_ = 0, links_ = 0;
  std::vector<bool> switching_;
};

}  // namespace

Graph parse_ns3(std::string_view text, const OnMistake& mistake) { return Parser(text, mistake).parse(); }

void Ns3::fields(Fields& f) {
  f.file("file", file, "the topology file: node N becomes host `hN` or switch `sN`");
  if (!file.is_read) return;
  graph = parse_ns3(
      file.text, [&](int line, int column, const std::string& why) { f.refuse_in("file", file, line, column, why); });
}

void Ns3::build(Graph& to) const {
  if (file.path.empty()) throw ConfigError("`ns3:` needs `file: NAME`");
  if (graph.nodes.empty()) throw ConfigError("no topology could be read from `" + file.path + "`");
  to = graph;
}

}  // namespace rocebox::topology
