// SPDX-License-Identifier: BSD-3-Clause
// The kinds of components that there are, and every in-tree component. Deleting a folder and its lines here removes
// it entirely.
#include "runtime/component/registry.h"

#include <vector>

#include "kernels/allgather/observer/allgather.h"
#include "kernels/allgather/switch/reduce.h"
#include "kernels/allgather/switch/reduce_scatter.h"
#include "kernels/allgather/workload.h"
#include "kernels/dpa/dpa.h"
#include "kernels/inspect/inspect.h"
#include "kernels/link/link.h"
#include "kernels/lowar/lowar.h"
#include "kernels/scr/scr.h"
#include "kernels/sdr/model/sdr_model.h"
#include "kernels/sdr/observer/sdr.h"
#include "kernels/sdr/workload/sdr_messages.h"
#include "kernels/themis/themis.h"
#include "nic_model/host/workloads/collectives.h"
#include "nic_model/host/workloads/dpa_program.h"
#include "nic_model/host/workloads/rping.h"
#include "nic_model/host/workloads/ucmatose.h"
#include "nic_model/host/workloads/verbs_check.h"
#include "nic_model/nic.h"
#include "nic_model/pcc/pcc.h"
#include "nic_model/rate/dcqcn_observer.h"
#include "runtime/kernel/model.h"
#include "runtime/kernel/workload.h"
#include "switch_model/acl/acl.h"
#include "switch_model/forward/forward.h"
#include "switch_model/program.h"
#include "switch_model/snooping/snooping.h"
#include "switch_model/switch.h"

namespace rocebox {

std::span<const ComponentKind> component_kinds() {
  static constexpr ComponentKind kKinds[] = {
      kKernels, kDevices, kWorkloads, kModels, nic_model::kCongestionControls, switch_model::kPrograms};
  return kKinds;
}

std::span<const Component> in_tree_components() {
  static const std::vector<Component> components = [] {
    std::vector<Component> all = {allgather_component(),
                                  nic_model::dcqcn_component(),
                                  dpa_component(),
                                  dpa_program_workload(),
                                  inc_reduce_component(),
                                  inc_reduce_scatter_workload(),
                                  inspect_component(),
                                  link_component(),
                                  lowar_component(),
                                  nic_component(),
                                  nic_model::pcc::pcc_component(),
                                  rping_workload(),
                                  scr_component(),
                                  scr_control_component(),
                                  sdr_component(),
                                  sdr_messages_workload(),
                                  sdr_model(),
                                  switch_component(),
                                  switch_model::acl_component(),
                                  switch_model::forward_component(),
                                  switch_model::snooping_component(),
                                  themis_component(),
                                  ucmatose_workload(),
                                  verbs_check_workload()};
    const std::span<const Component> workloads = nic_workloads();
    all.insert(all.end(), workloads.begin(), workloads.end());
    const std::vector<Component> multicast = allgather_workloads();
    all.insert(all.end(), multicast.begin(), multicast.end());
    return all;
  }();
  return components;
}

}  // namespace rocebox
