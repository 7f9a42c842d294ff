// SPDX-License-Identifier: BSD-3-Clause
// Every in-tree kernel and program, one row each. Deleting a folder and its row removes it entirely.
#include "runtime/component/registry.h"

#include <array>
#include <string>
#include <vector>

#include "kernels/inspect/inspect.h"
#include "kernels/link/link.h"
#include "kernels/lowar/lowar.h"
#include "kernels/themis/themis.h"
#include "switch_model/acl/acl.h"
#include "switch_model/forward/forward.h"
#include "switch_model/switch.h"

namespace rocebox {
namespace {

// The programs as parts of a switch, so that they are found by their names.
const KernelPart* program_parts() {
  static const std::vector<std::string> alone = [] {
    std::vector<std::string> all;
    for (const switch_model::ProgramType& program : switch_model::in_tree_programs()) {
      const std::string name = program.name;
      all.push_back("{programs: [" + name + "]" + (program.needs ? ", " + name + ": " + program.needs : "") + "}");
    }
    return all;
  }();
  static const std::vector<KernelPart> parts = [] {
    std::vector<KernelPart> all;
    for (const switch_model::ProgramType& program : switch_model::in_tree_programs())
      all.push_back({program.name, "program", program.summary, alone[all.size()].c_str(), program.examples});
    all.push_back({});
    return all;
  }();
  return parts.data();
}

// A switch, with the examples of its programs behind its own.
KernelType switch_with_programs() {
  static const std::vector<Example> examples = [] {
    std::vector<Example> all;
    const auto add = [&all](const Example* example) {
      for (; example && example->title; example++) all.push_back(*example);
    };
    add(switch_kernel_type().examples);
    for (const switch_model::ProgramType& program : switch_model::in_tree_programs()) add(program.examples);
    all.push_back({nullptr, nullptr});
    return all;
  }();
  KernelType type = switch_kernel_type();
  type.examples = examples.data();
  type.parts = program_parts();
  return type;
}

}  // namespace

std::span<const KernelType> in_tree_kernels() {
  static const std::array kernels = {inspect_kernel_type(), link_kernel_type(), lowar_kernel_type(),
                                     switch_with_programs()};
  return kernels;
}

// The programs of a switch.
std::span<const switch_model::ProgramType> switch_model::in_tree_programs() {
  static const std::array programs = {acl_program_type(), forward_program_type(), themis_program_type()};
  return programs;
}

}  // namespace rocebox
