// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/inspect/inspect.h"

namespace rocebox {
namespace {
class Inspect final : public Kernel {
 public:
  struct Config {
    void fields(Fields&) {}
  };
  Inspect(const Config&, Stats&) {}
  void process(Context&, Port, Batch&) override {}
};
}  // namespace
KernelType inspect_kernel_type() { return two_sided_kernel<Inspect>("inspect", "placeholder"); }
}  // namespace rocebox
