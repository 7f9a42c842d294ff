// SPDX-License-Identifier: BSD-3-Clause
// Metrics: numbers with names, sentences and labels, as OpenMetrics 1.0 text.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/kernel/counter.h"
#include "runtime/telemetry/histogram.h"

namespace rocebox {

/// One exposition. Families keep the order in which they were first named. Numbers with the same name and labels are
/// those of the shards of a run: they are added up; of high-water marks the highest is told. Names are made of letters,
/// digits and `_`; other characters become `_`. A family has one kind and the sentence that it was given first.
class Metrics {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  /// `instance`: a label of every number; empty: none.
  explicit Metrics(std::string instance) : instance_(std::move(instance)) {}

  /// What a counter says, by its kind: counter() or gauge(); of the gauges of a high-water mark the highest.
  void number(CounterKind kind, std::string_view name, std::string_view sentence, const Labels& labels, double value);
  /// Something that only grows; `name` comes without `_total`.
  void counter(std::string_view name, std::string_view sentence, const Labels& labels, double value);
  /// Something that grows and shrinks.
  void gauge(std::string_view name, std::string_view sentence, const Labels& labels, double value);
  /// What never changes, as labels.
  void info(std::string_view name, std::string_view sentence, const Labels& labels);
  /// Durations: median, p99 and p99.9 in seconds, how many they are and their sum; `name` ends in `_seconds`.
  void summary(std::string_view name, std::string_view sentence, const Labels& labels, const Histogram& nanos);

  /// The whole of it, `# EOF` at the end.
  std::string text() const;

 private:
  enum class Kind { kCounter, kGauge, kInfo, kSummary };
  struct Sample {
    std::string suffix, labels;
    double value;
  };
  struct Family {
    std::string name, sentence;
    Kind kind;
    std::vector<Sample> samples;
    std::unordered_map<std::string, std::size_t> places;  // of samples, by suffix and labels
  };
  // How numbers with the same name and labels become one.
  enum class Same { kSum, kHighest, kFirst };
  void add(Kind kind, std::string_view name, std::string_view sentence, std::string_view suffix, const Labels& labels,
           double value, Same same = Same::kSum);
  std::string labels_text(const Labels& labels) const;

  std::string instance_;
  std::vector<Family> families_;
  std::map<std::string, std::size_t> by_name_;
};

}  // namespace rocebox
