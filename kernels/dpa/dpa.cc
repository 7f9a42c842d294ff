// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/dpa/dpa.h"

#include "kernels/dpa/watcher.h"

namespace rocebox {
namespace {

constexpr Example kDpaExamples[] = {
    {"messages and bytes counted, and what the program says of them",
     "{program: counter, results: [counter_messages, counter_bytes]}"},
    {"bits for immediates of UC WRITEs, in memory of a host",
     "{program: bitmap, host_bytes: 8192, rc: false, ud: false}"},
    {"four threads that take their time, as the multicast paper measured it",
     "{program: counter, threads: 4, cq_entries: 64, engine: {timing: {cycles_per_cqe: 1084, instructions_per_cqe: "
     "113}}}"},
    {"SDR's receiver in small: a byte for each chunk of 16 packets",
     "{program: chunks, host_bytes: 4096, count: 16, results: [chunks_complete]}"},
    {"a program that answers: into the void", "{program: echo, threads: 2, write_imm: false, buffer: 1KiB}"},
    {nullptr, nullptr},
};

}  // namespace

Component dpa_component() {
  return two_sided_kernel<dpa_observer::Watcher>(
      "dpa", "runs a DPA's device program on completions made from the packets that pass", kDpaExamples);
}

}  // namespace rocebox
