// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/dpa/config.h"

#include <bit>

#include "nic_model/dpa/library.h"
#include "nic_model/dpa/program.h"
#include "runtime/component/component.h"

namespace rocebox::dpa_observer {
namespace {

constexpr std::string_view kFromWords[] = {"both", "left", "right"};
constexpr std::uint64_t kCqeBytes = 64, kSendBlockBytes = 64, kReceiveBytes = 16, kMoreBytes = 1024;

}  // namespace

void WatchedQp::fields(Fields& f) {
  f.integer("qpn", qpn, {2, 0xFFFFFF}, "its number, to which packets are sent");
  f.address("address", address, Presence::kOptional, "IP address of its NIC; left out: any");
}

std::uint64_t Config::queue_bytes() const {
  const std::uint64_t each = static_cast<std::uint64_t>(cq_entries) * kCqeBytes + kSendBlocks * kSendBlockBytes +
                             kReceives * (kReceiveBytes + (buffer + 63) / 64 * 64) + kMoreBytes;
  return static_cast<std::uint64_t>(threads) * each;
}

void Config::fields(Fields& f) {
  f.text("program", program, "device program of those that come with rocebox: " + nic_model::dpa::library_names());
  f.file("file", file, "one of your own, in its place: a shared object compiled against the device API");
  f.text("handler", handler, "its function that events activate; left out: PROGRAM_handler");
  f.integer("threads", threads, {1, static_cast<std::int64_t>(nic_model::dpa::kThreadsMax)},
            "threads that run it, each with a completion queue; queue pairs are dealt to them in turn");
  f.integer("cq_entries", cq_entries, {64, kCqEntriesMax}, "CQEs of each queue, a power of two");
  if (!std::has_single_bit(static_cast<std::uint64_t>(cq_entries))) f.refuse("cq_entries", "is no power of two");
  f.integer("flows", flows, {1, kFlowsMax}, "queue pairs that are watched; packets to more pass, and are counted");
  f.boolean("rc", rc, "CQEs of RC");
  f.boolean("uc", uc, "CQEs of UC");
  f.boolean("ud", ud, "CQEs of UD");
  f.boolean("sends", sends, "CQEs of SENDs");
  f.boolean("write_imm", write_imm, "CQEs of WRITEs with immediate");
  f.choice("from", from, kFromWords, "packets that come by which side");
  f.list("qps", qps, kQpsMax, "only these queue pairs; none: all");
  f.bytes("buffer", buffer, {0, 64 << 10}, "bytes of a SEND that handlers find in the buffer of its receive");
  f.integer("host_bytes", host_bytes, {0, 1 << 30}, "memory of a host that the program has a window to");
  f.integer("count", count, {0, 0xFFFFFFFF},
            "a number that the program finds in its endpoint: of `chunks`, packets of a chunk");
  f.texts("results", results, "functions of the program that are called for the report, without arguments");
  f.boolean("check_icrc", check_icrc, "packets with a wrong ICRC are none, as for a NIC");
  f.group("engine", "the DPA that runs it", [this](Fields& g) { engine.fields(g); });
  if (!file.path.empty()) f.exclude("program", "and `file` are one or the other");
  if (file.path.empty() && !nic_model::dpa::library_has(program))
    f.refuse("program", "is none of: " + nic_model::dpa::library_names());
  if (file.is_read) try {
      nic_model::dpa::Program::check(file.path, file.text);
    } catch (const ConfigError& error) {
      f.refuse("file", error.what());
    }
  if (!file.path.empty() && handler.empty())
    f.refuse("handler", "is missing: which function of `file` events activate");
  if (results.size() > kResultsMax) f.refuse("results", "are 16 at most");
  if (static_cast<std::size_t>(threads) > engine.threads()) f.refuse("threads", "are more than the engine has");
  if (queue_bytes() > engine.heap) f.refuse("threads", "have queues that do not fit into the engine's heap");
}

}  // namespace rocebox::dpa_observer
