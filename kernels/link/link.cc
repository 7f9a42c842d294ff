// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/link/link.h"

namespace rocebox {
namespace {
class Link final : public Kernel {
 public:
  struct Config {
    void fields(Fields&) {}
  };
  Link(const Config&, Stats&) {}
  void process(Context&, Port, Batch&) override {}
};
}  // namespace
KernelType link_kernel_type() { return two_sided_kernel<Link>("link", "placeholder"); }
}  // namespace rocebox
