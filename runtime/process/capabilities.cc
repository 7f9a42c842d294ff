// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/process/capabilities.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace rocebox {
namespace {

constexpr std::pair<Capability, const char*> kNames[] = {{Capability::kNetAdmin, "CAP_NET_ADMIN"},
                                                         {Capability::kNetRaw, "CAP_NET_RAW"},
                                                         {Capability::kSysAdmin, "CAP_SYS_ADMIN"}};

}  // namespace

std::string missing_capabilities(std::initializer_list<Capability> needed) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, data) != 0) return "";  // then the kernel itself will say no
  std::vector<const char*> missing;
  for (Capability capability : needed) {
    const auto number = static_cast<unsigned>(capability);
    if (data[number / 32].effective >> number % 32 & 1) continue;
    for (const auto& [known, name] : kNames)
      if (known == capability) missing.push_back(name);
  }
  std::string text;
  for (std::size_t i = 0; i < missing.size(); i++)
    text += (i == 0 ? "" : i + 1 == missing.size() ? " and " : ", ") + std::string(missing[i]);
  return text;
}

}  // namespace rocebox
