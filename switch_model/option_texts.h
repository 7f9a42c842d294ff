// SPDX-License-Identifier: BSD-3-Clause
// Every option as text, for who compares two configurations.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rocebox {
class Fields;
}

namespace rocebox::switch_model {

/// Paths, such as `themis.paths` or `multicast_groups[0].group`, with their values, in the order of declaration.
using OptionTexts = std::vector<std::pair<std::string, std::string>>;

/// What `fields` shows; its values are left as they are.
OptionTexts option_texts(const std::function<void(Fields&)>& fields);

}  // namespace rocebox::switch_model
