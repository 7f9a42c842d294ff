// SPDX-License-Identifier: BSD-3-Clause
// How the numbers of a report read: by the last words of their names, see Report.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// The key without the unit that the text shows beside the number.
std::string report_label(std::string_view key);
/// One value with its unit. Control characters in it are written out.
std::string report_value(std::string_view key, const Json& value);
/// What says nothing and is left out: 0, no, empty. PSN 0 and QPN 0 say something.
bool is_silent(std::string_view key, const Json& value);
/// No group and no table.
inline bool is_plain(const Json& value) { return !value.is_object() && !value.is_array(); }

/// A column of a table: one unit for all of its cells, which stands in its head.
struct TextColumn {
  std::string head;
  std::vector<std::string> cells;
  bool is_text = false;  ///< put to the left
  bool silent = true;    ///< no cell says anything
};
/// The member `key` of each row; `-` where a row has none.
TextColumn report_column(const std::string& key, const std::vector<const Json*>& rows);

}  // namespace rocebox
