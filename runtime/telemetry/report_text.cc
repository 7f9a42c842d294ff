// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/telemetry/json_report.h"
#include "runtime/telemetry/text_cells.h"

namespace rocebox {
namespace {

constexpr std::size_t kColumnsMax = 12;
// Rows of a table that fit a screen with what is around them; rows that take several lines each are fewer.
constexpr std::size_t kRowsShown = 20, kBlocksShown = 4;

constexpr std::string_view kTitle = "\033[1m", kHead = "\033[2m", kLost = "\033[33m", kWrong = "\033[31m",
                           kPlain = "\033[0m";

bool is_flat(const Json& value) {
  return value.is_object() && std::all_of(value.begin(), value.end(), [](const Json& each) { return is_plain(each); });
}

bool has_numbers_only(const Json& value) {
  return value.is_object() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Json& each) { return each.is_number(); });
}

// Counters of packets that were lost somewhere.
bool counts_loss(std::string_view key) { return key.starts_with("drop_") || key.find("_drop_") != key.npos; }

// The union of the rows' keys.
std::vector<std::string> keys_of(const std::vector<const Json*>& rows) {
  std::vector<std::string> keys;
  for (const Json* row : rows)
    for (const auto& item : row->items())
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) keys.push_back(item.key());
  return keys;
}

// The rows that are shown, and what is said of them.
struct Shown {
  std::vector<std::size_t> rows;
  std::string which;  // empty: all
};

// The first of these that a row has says how much the row weighs. Events have none: they stand in the order of time.
std::string_view weight_of(const Json& row) {
  if (!row.is_object() || row.contains("at_ns")) return "";
  for (std::string_view key : {"packets", "bytes", "times", "count"})
    if (row.contains(std::string(key)) && row[std::string(key)].is_number()) return key;
  return "";
}

double number_in(const Json& row, const std::string& key) {
  return row.is_object() && row.contains(key) && row[key].is_number() ? row[key].get<double>() : 0;
}
// Whether a row is of an expectation that does not hold.
bool is_wrong(const Json& row) {
  return row.is_object() && row.contains("holds") && row["holds"].is_boolean() && !row["holds"].get<bool>();
}

Shown choose(const Json& rows, std::size_t most) {
  Shown shown;
  for (std::size_t i = 0; i < rows.size(); i++) shown.rows.push_back(i);
  if (rows.size() <= most) return shown;
  const auto by = [&](auto heavier) { std::stable_sort(shown.rows.begin(), shown.rows.end(), heavier); };
  const std::string weight(weight_of(rows[0]));
  shown.which = fmt::format("the first {}", most);
  if (rows[0].is_object() && rows[0].contains("holds")) {
    by([&](std::size_t a, std::size_t b) { return is_wrong(rows[a]) && !is_wrong(rows[b]); });
  } else if (!weight.empty()) {
    shown.which = fmt::format("the {} with the most {}", most, weight == "count" ? "of it" : weight);
    by([&](std::size_t a, std::size_t b) { return number_in(rows[a], weight) > number_in(rows[b], weight); });
  }
  shown.rows.resize(most);
  return shown;
}

class Writer {
 public:
  explicit Writer(const ReportStyle& style) : style_(style) {}
  std::string take() { return std::move(out_); }

  // Plain members flow on lines; objects and tables follow as blocks.
  void object(const Json& object, std::size_t indent) {
    std::vector<Word> words;
    for (const auto& [key, value] : object.items())
      if (is_plain(value) && !is_silent(key, value))
        words.push_back({fmt::format("{} {}", report_label(key), report_value(key, value)), counts_loss(key)});
    flow(words, indent);
    for (const auto& [key, value] : object.items()) {
      if (is_plain(value)) continue;
      if (value.is_array())
        table(key, value, indent);
      else
        block(key, value, indent);
    }
  }

 private:
  struct Word {
    std::string text;
    bool lost;
  };

  std::string colored(std::string_view color, std::string_view text) const {
    return style_.color && !color.empty() ? fmt::format("{}{}{}", color, text, kPlain) : std::string(text);
  }
  void line(std::size_t indent, std::string_view text, std::string_view color = {}) {
    out_ += fmt::format("{:{}}{}\n", "", indent, colored(color, text));
  }

  void flow(const std::vector<Word>& words, std::size_t indent) {
    std::string current;
    std::size_t width = 0;
    for (const Word& word : words) {
      if (width > 0 && indent + width + 3 + word.text.size() > style_.width) {
        line(indent, current);
        current.clear();
        width = 0;
      }
      current += (width == 0 ? "" : "   ") + colored(word.lost ? kLost : "", word.text);
      width += (width == 0 ? 0 : 3) + word.text.size();
    }
    if (width > 0) line(indent, current);
  }

  void block(const std::string& key, const Json& value, std::size_t indent) {
    const auto items = value.items();
    if (is_flat(value) &&
        std::all_of(items.begin(), items.end(), [](const auto& i) { return is_silent(i.key(), i.value()); }))
      return;
    if (value.size() > 1 && std::all_of(value.begin(), value.end(), has_numbers_only))
      return members(key, value, indent);
    line(indent, report_label(key), kTitle);
    object(value, indent + 2);
  }

  // Objects of one kind, such as the ports of a device: a line each, and zeros where others have values.
  void members(const std::string& key, const Json& value, std::size_t indent) {
    std::vector<const Json*> rows;
    TextColumn names{report_label(key), {}, true, false};
    for (const auto& item : value.items()) {
      rows.push_back(&item.value());
      names.cells.push_back("  " + report_label(item.key()));
    }
    std::vector<TextColumn> columns = {std::move(names)};
    for (const std::string& member : keys_of(rows)) columns.push_back(report_column(member, rows));
    std::erase_if(columns, [](const TextColumn& column) { return column.silent; });
    write(columns, rows, indent);
  }

  void table(const std::string& key, const Json& all, std::size_t indent) {
    if (all.empty()) return;
    const bool words = std::all_of(all.begin(), all.end(), is_plain);
    std::vector<TextColumn> columns;
    std::vector<const Json*> rows;
    Shown shown = choose(all, style_.full ? all.size() : kRowsShown);
    const auto gather = [&] {
      rows.clear();
      for (const std::size_t row : shown.rows) rows.push_back(&all[row]);
    };
    gather();
    const bool lines =
        !words && std::all_of(all.begin(), all.end(), is_flat) && make_columns(rows, indent + 2, columns);
    if (!words && !lines) {
      shown = choose(all, style_.full ? all.size() : kBlocksShown);
      gather();
    }
    line(indent,
         fmt::format("{} ({}{})", report_label(key), all.size(),
                     shown.which.empty() ? "" : "; " + shown.which + ", --full: all"),
         kTitle);
    if (lines) return write(columns, rows, indent + 2);
    for (std::size_t i = 0; i < rows.size(); i++) {
      if (words) {
        line(indent + 2, report_value("", *rows[i]));
        continue;
      }
      line(indent + 2, fmt::format("#{}", shown.rows[i] + 1), kTitle);
      object(*rows[i], indent + 4);
    }
  }

  // The rows' members side by side; those that say nothing in any row make room, from the right, while the line is too
  // long. False when there are too many for one line.
  bool make_columns(const std::vector<const Json*>& rows, std::size_t indent, std::vector<TextColumn>& columns) const {
    for (const std::string& key : keys_of(rows)) columns.push_back(report_column(key, rows));
    const auto width = [&] {
      std::size_t all = indent;
      for (const TextColumn& column : columns) all += width_of(column) + 2;
      return all - 2;
    };
    while (!style_.full && (columns.size() > kColumnsMax || width() > style_.width)) {
      const auto last =
          std::find_if(columns.rbegin(), columns.rend(), [](const TextColumn& column) { return column.silent; });
      if (last == columns.rend()) break;
      columns.erase(std::next(last).base());
    }
    return !columns.empty() && columns.size() <= kColumnsMax;
  }

  static std::size_t width_of(const TextColumn& column) {
    std::size_t width = column.head.size();
    for (const std::string& cell : column.cells) width = std::max(width, cell.size());
    return width;
  }

  void write(const std::vector<TextColumn>& columns, const std::vector<const Json*>& rows, std::size_t indent) {
    std::vector<std::string> lines(rows.size() + 1);
    for (const TextColumn& column : columns) {
      const std::size_t width = width_of(column);
      for (std::size_t i = 0; i < lines.size(); i++)
        lines[i] += fmt::format(fmt::runtime(column.is_text ? "{:<{}}  " : "{:>{}}  "),
                                i == 0 ? column.head : column.cells[i - 1], width);
    }
    for (std::size_t i = 0; i < lines.size(); i++) {
      lines[i].resize(lines[i].find_last_not_of(' ') + 1);
      const bool wrong = i > 0 && is_wrong(*rows[i - 1]);
      line(indent, lines[i], i == 0 ? kHead : wrong ? kWrong : "");
    }
  }

  const ReportStyle style_;
  std::string out_;
};

}  // namespace

std::string report_text(const Json& report, const ReportStyle& style) {
  Writer writer(style);
  writer.object(report, 0);
  return writer.take();
}

}  // namespace rocebox
