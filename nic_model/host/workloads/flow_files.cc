// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/flow_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "runtime/component/input_file.h"

namespace rocebox::nic_model {
namespace {

// Flows of a file: a day's work for one core, and 100 MiB.
constexpr std::size_t kFlowsMax = std::size_t{1} << 20;
constexpr std::uint32_t kNodesMax = 1 << 20, kTriggersMax = 1 << 20;
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 40;
constexpr double kSecondsMax = 24 * 3600;

class Parser {
 public:
  Parser(std::string_view text, const OnMistake& mistake) : lines_(text), mistake_(mistake) {}

 protected:
  bool fail(const Word& word, const std::string& why) {
    mistakes_++;
    mistake_(word.line, word.column, why);
    return false;
  }
  bool fail_at_end(const std::string& why) {
    mistakes_++;
    mistake_(std::max(1, lines_.line()), 1, why);
    return false;
  }
  template <class T>
  bool number(const Word& word, T& value, T low, T high, const char* what) {
    if (number_of(word.text, value) && value >= low && value <= high) return true;
    return fail(word, fmt::format("expected {}, {} to {}, found `{}`", what, low, high, word.text));
  }
  // A time in units of `per_second`.
  bool moment(const Word& word, double per_second, Nanos& at) {
    double value = 0;
    if (!number(word, value, 0.0, kSecondsMax * per_second, "a time")) return false;
    at = std::llround(value / per_second * 1e9);
    return true;
  }

  WordLines lines_;
  std::vector<Word> words_;
  std::size_t mistakes_ = 0;

 private:
  const OnMistake& mistake_;
};

class MatrixParser final : public Parser {
 public:
  using Parser::Parser;

  FlowFile parse() {
    while (lines_.next(words_)) {
      const Word& first = words_[0];
      if (const std::size_t arrow = first.text.find("->"); arrow != std::string_view::npos)
        flow(arrow);
      else if (first.text == "trigger")
        trigger();
      else if (first.text == "failure")
        fail(first, "failures of the file are not taken over: write them under `schedule:`");
      else
        head();
      if (file_.flows.size() > kFlowsMax) {
        fail(first, fmt::format("more than {} flows", kFlowsMax));
        return {};
      }
    }
    check();
    return mistakes_ == 0 ? std::move(file_) : FlowFile{};
  }

 private:
  struct Known {
    std::uint32_t place;
    int started_in = 0, fired_in = 0;  // lines that name it so
    bool has_kind = false;
  };

  void head() {
    const std::pair<std::string_view, std::int64_t*> keys[] = {
        {"Nodes", &nodes_}, {"Connections", &connections_}, {"Triggers", &triggers_}, {"Failures", &failures_}};
    const auto key = std::ranges::find(keys, words_[0].text, [](const auto& one) { return one.first; });
    if (key == std::end(keys)) {
      fail(words_[0], fmt::format("expected Nodes, Connections, Triggers, `A->B ...` or `trigger ...`, found `{}`",
                                  words_[0].text));
    } else if (words_.size() != 2) {
      fail(words_[0], fmt::format("expected `{} NUMBER`", key->first));
    } else {
      number<std::int64_t>(words_[1], *key->second, 0, kNodesMax, "a number");
    }
  }

  bool node(const Word& word, std::string_view text, std::uint32_t& node) {
    if (number_of(text, node) && node < (nodes_ < 0 ? kNodesMax : nodes_)) return true;
    return fail(word, nodes_ < 0 ? fmt::format("`{}` is no number of a node", text)
                                 : fmt::format("`{}` is no node: the file has {}", text, nodes_));
  }

  void flow(std::size_t arrow) {
    const Word& pair = words_[0];
    FileFlow flow;
    flow.line = pair.line;
    bool good = node(pair, pair.text.substr(0, arrow), flow.source);
    good = node(pair, pair.text.substr(arrow + 2), flow.destination) && good;
    if (good && flow.source == flow.destination) good = fail(pair, "goes from a node to itself");
    bool has_start = false;
    for (std::size_t i = 1; good && i < words_.size(); i++) good = option(flow, i, has_start);
    if (good && !has_start && flow.trigger == 0) good = fail(pair, "nothing says when it begins: `start` or `trigger`");
    if (good && has_start && flow.trigger != 0)
      good = fail(pair, "begins by `start` and by `trigger`: give one of both");
    if (good && flow.bytes == 0) good = fail(pair, "has no `size`: flows without end are not taken over");
    if (good) file_.flows.push_back(flow);
    flows_++;
  }

  // The option that begins at word `at`, which is moved to its last one.
  bool option(FileFlow& flow, std::size_t& at, bool& has_start) {
    const Word key = words_[at];
    if (key.text == "addon") return fail(key, "`addon` is not taken over");
    constexpr std::string_view kKeys[] = {"start", "size", "id", "trigger", "send_done_trigger", "recv_done_trigger",
                                          "prio"};
    if (std::ranges::find(kKeys, key.text) == std::end(kKeys))
      return fail(key, fmt::format("unknown word `{}`", key.text));
    if (++at == words_.size()) return fail(key, fmt::format("`{}` needs a value", key.text));
    const Word& value = words_[at];
    if (key.text == "size") return number<std::uint64_t>(value, flow.bytes, 1, kBytesMax, "bytes");
    if (key.text == "start") {
      has_start = true;
      return moment(value, 1e12, flow.start);
    }
    std::uint32_t id = 0;
    if (!number<std::uint32_t>(value, id, key.text == "prio" ? 0 : 1, UINT32_MAX, "a number")) return false;
    if (key.text == "prio" || key.text == "id") return true;
    Known* known = known_of(value, id);
    if (!known) return false;
    if (key.text == "trigger") {
      flow.trigger = known->place + 1;
      known->started_in = value.line;
    } else {
      flow.fires[key.text == "send_done_trigger" ? 0 : 1] = known->place + 1;
      known->fired_in = value.line;
    }
    return true;
  }

  void trigger() {
    std::uint32_t id = 0, count = 0;
    std::string_view kind;
    const Word first = words_[0];
    for (std::size_t i = 1; i < words_.size(); i++) {
      const Word key = words_[i];
      const bool has_value = key.text == "id" || key.text == "count";
      if (has_value && ++i == words_.size()) return (void)fail(key, fmt::format("`{}` needs a value", key.text));
      if (key.text == "id" || key.text == "count") {
        if (!number<std::uint32_t>(words_[i], key.text == "id" ? id : count, 1, kFlowsMax, "a number")) return;
      } else if (key.text == "oneshot" || key.text == "barrier") {
        kind = key.text;
      } else {
        return (void)fail(key, key.text == "multishot" ? "`multishot`: flows that begin again are not taken over"
                                                       : fmt::format("unknown word `{}`", key.text));
      }
    }
    triggers_seen_++;
    if (id == 0 || kind.empty()) return (void)fail(first, "needs `id NUMBER`, and `oneshot` or `barrier`");
    if (kind == "barrier" && count == 0) return (void)fail(first, "`barrier` needs `count NUMBER`");
    Known* known = known_of(first, id);
    if (!known) return;
    if (known->has_kind) return (void)fail(first, fmt::format("trigger {} is there already", id));
    known->has_kind = true;
    file_.triggers[known->place].needed = kind == "barrier" ? count : 1;
  }

  Known* known_of(const Word& word, std::uint32_t id) {
    const auto [found, is_new] = known_.try_emplace(id, Known{static_cast<std::uint32_t>(file_.triggers.size())});
    if (is_new && file_.triggers.size() == kTriggersMax) {
      fail(word, fmt::format("more than {} triggers", kTriggersMax));
      known_.erase(found);
      return nullptr;
    }
    if (is_new) {
      file_.triggers.emplace_back();
      ids_.push_back(id);
    }
    return &found->second;
  }

  void check() {
    if (nodes_ < 0) fail_at_end("has no line `Nodes NUMBER`");
    if (connections_ != flows_)
      fail_at_end(fmt::format("`Connections {}` and {} flows contradict each other",
                              std::max<std::int64_t>(0, connections_), flows_));
    if (triggers_ != triggers_seen_)
      fail_at_end(fmt::format("`Triggers {}` and {} triggers contradict each other", triggers_, triggers_seen_));
    for (const std::uint32_t id : ids_) {
      const Known& known = known_.at(id);
      const int line = std::max(known.started_in, known.fired_in);
      if (!known.has_kind) fail({"", line, 1}, fmt::format("there is no line `trigger id {} ...`", id));
      if (known.started_in && !known.fired_in)
        fail({"", line, 1}, fmt::format("nothing fires trigger {}, which this flow waits for", id));
    }
  }

  FlowFile file_;
  std::int64_t nodes_ = -1, connections_ = -1, triggers_ = 0, failures_ = 0, flows_ = 0, triggers_seen_ = 0;
  std::unordered_map<std::uint32_t, Known> known_;
  std::vector<std::uint32_t> ids_;  // in the order in which they came up
};

class Ns3Parser final : public Parser {
 public:
  using Parser::Parser;

  FlowFile parse() {
    std::uint64_t count = 0;
    if (!lines_.next(words_)) return (void)fail_at_end("is empty: expected the number of flows"), FlowFile{};
    if (words_.size() != 1) return (void)fail(words_[0], "expected the number of flows, alone"), FlowFile{};
    if (!number<std::uint64_t>(words_[0], count, 1, kFlowsMax, "the number of flows")) return {};
    FlowFile file;
    for (std::uint64_t i = 0; i < count; i++) {
      if (!lines_.next(words_))
        return (void)fail_at_end(fmt::format("ends behind {} of {} flows", i, count)), FlowFile{};
      flow(file);
    }
    Nanos first = kNever;
    for (const FileFlow& flow : file.flows) first = std::min(first, flow.start);
    for (FileFlow& flow : file.flows) flow.start -= first;
    return mistakes_ == 0 ? file : FlowFile{};
  }

 private:
  void flow(FlowFile& file) {
    if (size_ == 0 && (words_.size() == 5 || words_.size() == 6)) size_ = words_.size();
    if (words_.size() != size_)
      return (void)fail(words_[0], size_ ? fmt::format("has {} words, those before {}", words_.size(), size_)
                                         : "expected `SOURCE DESTINATION PRIORITY [PORT] BYTES SECONDS`");
    FileFlow flow;
    flow.line = words_[0].line;
    bool good = number<std::uint32_t>(words_[0], flow.source, 0, kNodesMax - 1, "a node");
    good = number<std::uint32_t>(words_[1], flow.destination, 0, kNodesMax - 1, "a node") && good;
    for (std::size_t i = 2; i < size_ - 2; i++) {
      std::uint32_t ignored = 0;
      good = number<std::uint32_t>(words_[i], ignored, 0, UINT32_MAX, "a number") && good;
    }
    good = number<std::uint64_t>(words_[size_ - 2], flow.bytes, 1, kBytesMax, "bytes") && good;
    good = moment(words_[size_ - 1], 1, flow.start) && good;
    if (good && flow.source == flow.destination) good = fail(words_[1], "goes from a node to itself");
    if (good) file.flows.push_back(flow);
  }

  std::size_t size_ = 0;  // words of a line
};

class SizeParser final : public Parser {
 public:
  using Parser::Parser;

  // Rows of bytes and share; empty after a mistake.
  std::vector<std::pair<double, double>> parse() {
    constexpr std::size_t kPointsMax = 65'536;
    std::vector<std::pair<double, double>> rows;
    while (lines_.next(words_)) {
      if (words_.size() != 2 || rows.size() == kPointsMax) {
        fail(words_[0], words_.size() != 2 ? "expected `BYTES SHARE`" : "has too many points");
        break;
      }
      double bytes = 0, share = 0;
      bool good = number(words_[0], bytes, 0.0, static_cast<double>(kBytesMax), "bytes");
      good = number(words_[1], share, 0.0, 100.0, "a share") && good;
      if (!good) continue;
      if (!rows.empty() && bytes <= rows.back().first) fail(words_[0], "is not above the size before it");
      if (!rows.empty() && share < rows.back().second) fail(words_[1], "is below the share before it");
      rows.emplace_back(bytes, share);
    }
    if (mistakes_ == 0 && rows.empty()) fail_at_end("has no line `BYTES SHARE`");
    if (mistakes_ == 0 && rows.back().second != 100 && rows.back().second != 1)
      fail_at_end("must end with a share of 1, or of 100 in percent");
    if (mistakes_ == 0 && rows.back().first < 1) fail_at_end("has no size above 0");
    if (mistakes_ != 0) rows.clear();
    return rows;
  }
};

}  // namespace

FlowFile parse_connection_matrix(std::string_view text, const OnMistake& mistake) {
  return MatrixParser(text, mistake).parse();
}

FlowFile parse_ns3_flows(std::string_view text, const OnMistake& mistake) { return Ns3Parser(text, mistake).parse(); }

SizeDistribution SizeDistribution::parse(std::string_view text, const OnMistake& mistake) {
  const auto rows = SizeParser(text, mistake).parse();
  SizeDistribution sizes;
  for (const auto& [bytes, share] : rows) sizes.points_.push_back({bytes, share / rows.back().second});
  return sizes;
}

double SizeDistribution::mean() const {
  double sum = points_.empty() ? 0 : points_[0].bytes * points_[0].share;
  for (std::size_t i = 1; i < points_.size(); i++)
    sum += (points_[i - 1].bytes + points_[i].bytes) / 2 * (points_[i].share - points_[i - 1].share);
  return sum;
}

std::uint64_t SizeDistribution::at(double u) const {
  const auto next = std::ranges::upper_bound(points_, u, {}, &Point::share);
  double bytes = points_.back().bytes;
  if (next == points_.begin()) {
    bytes = next->bytes;
  } else if (next != points_.end()) {
    const Point &low = next[-1], &high = *next;
    bytes = low.bytes + (high.bytes - low.bytes) * (u - low.share) / (high.share - low.share);
  }
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(bytes)));
}

}  // namespace rocebox::nic_model
