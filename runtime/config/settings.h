// SPDX-License-Identifier: BSD-3-Clause
// Settings: values of a configuration that the command line gives in place of what is written.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runtime/config/document.h"

namespace rocebox::config {

/// `KEY=VALUE`, taken apart. Throws ConfigError when it is nothing of the kind; `option` is who says so, for messages.
struct Setting {
  std::string key, value;
};
Setting parse_setting(const std::string& text, const std::string& option);

/// Puts each setting into the document: KEY is a name under `parameters:`, or a path of keys such as
/// `links.haul.loss`; VALUE is YAML. What is not there yet is added. Then puts the values of `parameters:` in place of
/// `$NAME`, wherever that is a value; `$$` is a `$` there. Without `parameters:` a `$` means nothing, and a note and
/// what is a mistake there say so. `options` are the keys that the document may have: a KEY that is none is a mistake
/// then.
void apply_settings(Node& root, const std::vector<Setting>& settings, Mistakes& mistakes,
                    const std::function<std::vector<std::string>()>& options = {});

}  // namespace rocebox::config
