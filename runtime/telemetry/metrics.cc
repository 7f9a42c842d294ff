// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>

namespace rocebox {
namespace {

constexpr std::string_view kTypes[] = {"counter", "gauge", "info", "summary"};

std::string safe_name(std::string_view name) {
  std::string safe(name);
  for (char& c : safe)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (safe.empty() || std::isdigit(static_cast<unsigned char>(safe[0]))) safe.insert(0, 1, '_');
  return safe;
}

// Backslash, quote and line feed are the three that OpenMetrics escapes, in HELP and in label values alike.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

// Counts are whole, and stay so up to 2^53.
std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 9007199254740992.0) return fmt::format("{:.0f}", value);
  return fmt::format("{:.9g}", value);
}

// The unit of a family is the end of its name.
std::string_view unit_of(std::string_view name) {
  for (std::string_view unit : {"seconds", "bytes"})
    if (name.ends_with(unit) && name.size() > unit.size() && name[name.size() - unit.size() - 1] == '_') return unit;
  return {};
}

}  // namespace

std::string Metrics::labels_text(const Labels& labels) const {
  std::string text;
  auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, escaped(value));
  };
  if (!instance_.empty()) add("instance", instance_);
  for (const auto& [name, value] : labels) add(name, value);
  return text;
}

void Metrics::add(Kind kind, std::string_view name, std::string_view sentence, std::string_view suffix,
                  const Labels& labels, double value, Same same) {
  const auto [place, is_new] = by_name_.try_emplace(safe_name(name), families_.size());
  if (is_new) families_.push_back({place->first, std::string(sentence), kind, {}, {}});
  Family& family = families_[place->second];
  if (family.kind != kind)
    throw std::logic_error(fmt::format("the metric {} is a {} and a {}", family.name,
                                       kTypes[static_cast<std::size_t>(family.kind)],
                                       kTypes[static_cast<std::size_t>(kind)]));
  const std::string text = labels_text(labels);
  const auto [sample, is_first] = family.places.try_emplace(std::string(suffix) + text, family.samples.size());
  if (is_first) {
    family.samples.push_back({std::string(suffix), text, value});
    return;
  }
  double& there = family.samples[sample->second].value;
  if (same == Same::kSum) there += value;
  if (same == Same::kHighest) there = std::max(there, value);
}

void Metrics::number(CounterKind kind, std::string_view name, std::string_view sentence, const Labels& labels,
                     double value) {
  switch (kind) {
    case CounterKind::kCount:
      return counter(name, sentence, labels, value);
    case CounterKind::kLevel:
      return gauge(name, sentence, labels, value);
    case CounterKind::kPeak:
      return add(Kind::kGauge, name, sentence, "", labels, value, Same::kHighest);
  }
}

void Metrics::counter(std::string_view name, std::string_view sentence, const Labels& labels, double value) {
  if (name.ends_with("_total")) name.remove_suffix(6);
  add(Kind::kCounter, name, sentence, "_total", labels, value);
}

void Metrics::gauge(std::string_view name, std::string_view sentence, const Labels& labels, double value) {
  add(Kind::kGauge, name, sentence, "", labels, value);
}

void Metrics::info(std::string_view name, std::string_view sentence, const Labels& labels) {
  add(Kind::kInfo, name, sentence, "_info", labels, 1, Same::kFirst);
}

void Metrics::summary(std::string_view name, std::string_view sentence, const Labels& labels, const Histogram& nanos) {
  constexpr std::pair<std::string_view, double> kQuantiles[] = {{"0.5", 50}, {"0.99", 99}, {"0.999", 99.9}};
  for (const auto& [quantile, percent] : kQuantiles) {
    Labels all = labels;
    all.emplace_back("quantile", quantile);
    const double value = nanos.count() ? static_cast<double>(nanos.percentile(percent)) / 1e9 : std::nan("");
    add(Kind::kSummary, name, sentence, "", all, value);
  }
  add(Kind::kSummary, name, sentence, "_count", labels, static_cast<double>(nanos.count()));
  add(Kind::kSummary, name, sentence, "_sum", labels, static_cast<double>(nanos.sum()) / 1e9);
}

std::string Metrics::text() const {
  std::string out;
  for (const Family& family : families_) {
    out += fmt::format("# TYPE {} {}\n", family.name, kTypes[static_cast<std::size_t>(family.kind)]);
    if (const std::string_view unit = unit_of(family.name); !unit.empty())
      out += fmt::format("# UNIT {} {}\n", family.name, unit);
    out += fmt::format("# HELP {} {}\n", family.name, escaped(family.sentence));
    for (const Sample& sample : family.samples)
      out +=
          fmt::format("{}{}{}{}{} {}\n", family.name, sample.suffix, sample.labels.empty() ? "" : "{", sample.labels,
                      sample.labels.empty() ? "" : "}", std::isnan(sample.value) ? "NaN" : number_text(sample.value));
  }
  return out + "# EOF\n";
}

}  // namespace rocebox
