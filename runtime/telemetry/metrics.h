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

#include "runtime/telemetry/histogram.h"

namespace rocebox {

/// One exposition. Families keep the order in which they were first named. Numbers with the same name and labels are
/// added up (shards of a run). Names are made of letters, digits and `_`; other characters become `_`. A family has one
/// kind and the sentence that it was given first.
class Metrics {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  /// `instance`: a label of every number; empty: none.
  explicit Metrics(std::string instance) : instance_(std::move(instance)) {}

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
  void add(Kind kind, std::string_view name, std::string_view sentence, std::string_view suffix, const Labels& labels,
           double value);
  std::string labels_text(const Labels& labels) const;

  std::string instance_;
  std::vector<Family> families_;
  std::map<std::string, std::size_t> by_name_;
};

}  // namespace rocebox
