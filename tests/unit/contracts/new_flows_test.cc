// SPDX-License-Identifier: BSD-3-Clause
// What a new flow takes of every kernel and switch program: pages of memory, which a packet would have to wait for.
// Times are bench/micro/new_flows_bench's.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>

#include "runtime/component/registry.h"
#include "runtime/config/config.h"
#include "runtime/drives/testbed.h"
#include "runtime/flows/zeroed_array.h"
#include "runtime/roce/psn.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/harness.h"

namespace rocebox {
namespace {

// Sanitizers keep notes of memory in memory of their own, which counts too.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ROCEBOX_SANITIZED)
constexpr double kNotes = 8;
#else
constexpr double kNotes = 1;
#endif
constexpr std::uint32_t kFirstQp = 2, kPartners = 0x800000;
constexpr std::size_t kTouchedMax = std::size_t{256} << 20;

struct Use {
  std::int64_t faults = 0, bytes = 0;
};

Use used_now() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  std::int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return {usage.ru_minflt, resident * sysconf(_SC_PAGESIZE)};
}

roce::PacketSpec data(std::uint32_t qp, std::uint32_t psn) {
  roce::PacketSpec spec;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, static_cast<std::uint8_t>(1 + qp % 200)),
                             roce::ipv4(10, 0, 1, static_cast<std::uint8_t>(1 + qp / 200 % 200))};
  spec.underlay.udp_source_port = static_cast<std::uint16_t>(0xC000 | qp);
  spec.opcode = IBV_OPCODE_RC_RDMA_WRITE_ONLY;
  spec.destination_qp = qp;
  spec.psn = (qp * 0x9E3779 + psn) & roce::kPsnMask;  // all over the space
  return spec;
}

roce::PacketSpec ack(std::uint32_t qp, std::uint32_t psn) {
  roce::PacketSpec spec = data(qp, psn);
  std::swap(spec.underlay.addresses.source, spec.underlay.addresses.destination);
  spec.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
  spec.destination_qp = qp + kPartners;
  spec.syndrome = 0x1F;
  return spec;
}

// A device by the text of its configuration, and what its steps have used.
class Bed {
 public:
  Bed(const std::string& text, std::size_t touched_max) : pool_(test::kPoolSizes) {
    config::Mistakes mistakes("new_flows.yaml");
    const std::string whole = "devices: {d: " + text + "}\n";
    config_ =
        std::make_unique<config::RunConfig>(config::load_text(whole, "new_flows.yaml", registry_, mistakes, false));
    EXPECT_TRUE(mistakes.none()) << mistakes.text();
    const flows::TouchedWhenMade touched(touched_max);
    device_ = make_device(config_->devices[0], pool_, 1);
    device_->set_sink([](Port, std::span<Packet> packets, Nanos) {
      for (Packet packet : packets) rte_pktmbuf_free(packet.mbuf());
    });
  }

  void send(Port in, const roce::PacketSpec& spec) {
    PacketPtr made = pool_.allocate(roce::built_bytes(spec));
    ASSERT_TRUE(made);
    roce::build(*made, spec);
    Packet packet = made.release();
    const Arrivals arrivals{in, {&packet, 1}};
    now_ += 100 * kMicrosecond;
    while (device_->next_deadline() < now_) device_->step(device_->next_deadline(), {});
    device_->step(now_, {&arrivals, 1});
  }

  /// The greatest number, or rows of a table, with this name in the device's report.
  std::uint64_t most(const std::string& name) const {
    Json report;
    JsonReport writer(report);
    device_->books().report(writer);
    return most(report, name);
  }

 private:
  static std::uint64_t most(const Json& in, const std::string& name) {
    std::uint64_t result = 0;
    for (const auto& [key, value] : in.items()) {
      if (key == name)
        result = std::max<std::uint64_t>(result, value.is_number() ? value.get<std::uint64_t>() : value.size());
      if (value.is_structured()) result = std::max(result, most(value, name));
    }
    return result;
  }

  Registry registry_;
  Pool pool_;
  std::unique_ptr<config::RunConfig> config_;
  std::unique_ptr<Device> device_;
  Nanos now_ = 0;
};

struct Case {
  const char* title;
  std::string text;
  const char* made;  // what the report has one of for each flow, or more
  Port in = 0;       // of data; ACKs come by the other one
};

std::vector<Case> all_cases(std::uint32_t flows) {
  const auto connections = [&](bool receivers) {
    std::string text;
    for (std::uint32_t qp = kFirstQp; qp < kFirstQp + flows; qp++) {
      const auto host = [&](int net, std::uint32_t number) {
        return "10.0." + std::to_string(net) + "." + std::to_string(1 + number % 200);
      };
      const std::string a = host(0, qp), b = host(1, qp / 200);
      const std::string there = std::to_string(qp), here = std::to_string(qp + kPartners);
      text += "{local: " + (receivers ? b : a) + ", local_qpn: " + (receivers ? there : here) +
              ", remote: " + (receivers ? a : b) + ", remote_qpn: " + (receivers ? here : there) + "},";
    }
    return text;
  };
  const std::string router = "forward: {learning: false, router_mac: '02:00:00:00:00:02', routes: [{prefix: ",
                    neighbour = "mac: '02:00:00:00:00:02'}";
  const std::string back = "{prefix: 10.0.0.0/24, via: [{port: a, " + neighbour + "]}]}",
                    two_ways = router + "10.0.1.0/24, via: [{port: b, " + neighbour + "]}, " + back,
                    four_paths = router + "10.0.1.0/24, via: [{port: b, " + neighbour + ", {port: c, " + neighbour +
                                 ", {port: d, " + neighbour + ", {port: e, " + neighbour + "]}, " + back;
  return {
      {"no kernel", "{path: a <-> b}", "packets_out"},
      {"inspect", "{path: a <-> inspect <-> b}", "flows"},
      {"link", "{path: a <-> link <-> b, kernels: {link: {delay: 10us, loss: 0.1%}}}", "forward_packets"},
      {"lowar, from the host", "{path: a <-> lowar <-> b, kernels: {lowar: {units: 4096, roce_mtu: 1024}}}",
       "encode_streams"},
      {"lowar, from the link", "{path: a <-> lowar <-> b, kernels: {lowar: {units: 4096, roce_mtu: 1024}}}",
       "decode_streams", 1},
      {"switch, L2", "{switch: {ports: [a, b], forward: {macs: [{mac: '02:00:00:00:00:02', ports: [b]}]}}}",
       "packets_out"},
      {"switch, L3, behind a rule",
       "{switch: {ports: [a, b], programs: [acl, forward], acl: {rules: [{match: {opcodes: "
       "[cnp]}, traffic_class: 5}]}, " +
           two_ways + "}}",
       "packets_out"},
      {"themis, sender",
       "{switch: {ports: [a, b, c, d, e], programs: [forward, themis], " + four_paths +
           ", themis: {hosts: [a], paths: 4, learning: false, connections: [" + connections(false) + "]}}}",
       "connections"},
      {"themis, receiver",
       "{switch: {ports: [b, a], programs: [forward, themis], " + two_ways +
           ", themis: {hosts: [b], paths: 4, learning: false, connections: [" + connections(true) + "]}}}",
       "connections", 1},
      {"themis, learning",
       "{switch: {ports: [a, b, c, d, e], programs: [forward, themis], " + four_paths +
           ", themis: {hosts: [a], paths: 4}}}",
       "unpaired"},
  };
}

// As the live drive makes devices: the pages are there before the first packet, but for one that the PSNs of a flow lie
// in.
TEST(NewFlows, TakeAPageOrTwoOfEveryKernel) {
  constexpr std::uint32_t kKnown = 64, kFlows = 2000;
  for (const Case& each : all_cases(kKnown + kFlows)) {
    Bed bed(each.text, kTouchedMax);
    const auto come = [&](std::uint32_t qp) {
      for (std::uint32_t psn = 0; psn < 2; psn++) {
        bed.send(each.in, data(qp, psn));
        bed.send(static_cast<Port>(1 - each.in), ack(qp, psn));
      }
    };
    for (std::uint32_t qp = kFirstQp; qp < kFirstQp + kKnown; qp++)
      come(qp);  // code, and packets of the pool, come with these
    const Use before = used_now();
    for (std::uint32_t qp = kFirstQp + kKnown; qp < kFirstQp + kKnown + kFlows; qp++) come(qp);
    const Use after = used_now();
    const double faults = static_cast<double>(after.faults - before.faults) / kFlows,
                 bytes = static_cast<double>(after.bytes - before.bytes) / kFlows;
    EXPECT_GE(bed.most(each.made), kKnown + kFlows) << each.title << ": no state was made";
    RecordProperty(each.title, std::to_string(faults) + " faults, " + std::to_string(bytes) + " B a flow");
    EXPECT_LE(faults, 1.5 * kNotes) << each.title;
    EXPECT_LE(bytes, 6 * 1024 * kNotes) << each.title;
  }
}

// As replay makes devices: what is not used is not taken.
TEST(NewFlows, AFlowOfInspectTakesWhatItsPsnsNeed) {
  constexpr std::uint32_t kFlows = 2000;
  Bed bed("{path: a <-> inspect <-> b}", 0);
  bed.send(0, data(1, 0));
  Use before = used_now();
  for (std::uint32_t qp = 2; qp < kFlows; qp++)
    for (std::uint32_t psn = 0; psn < 2; psn++) bed.send(0, data(qp, psn));
  Use after = used_now();
  EXPECT_LE((after.bytes - before.bytes) / kFlows, 12 * 1024 * kNotes) << "a flow of two packets";
  // One that has been through its window: README.md says 71 KiB. The flow itself has its memory by now.
  constexpr std::uint32_t kLong = 24, kWindow = 4096;
  before = used_now();
  for (std::uint32_t qp = 2; qp < 2 + kLong; qp++)
    for (std::uint32_t psn = 2; psn < kWindow + 2; psn++) bed.send(0, data(qp, psn));
  after = used_now();
  const double ring = 16 * kWindow;
  EXPECT_LE(static_cast<double>(after.bytes - before.bytes) / kLong, ring * 1.05 * kNotes);
  if (kNotes == 1) {
    EXPECT_GE(static_cast<double>(after.bytes - before.bytes) / kLong, ring * 0.9) << "the memory is not seen at all";
  }
}

// Free parts of the heap that have room for so many bytes: tests before may have left some. What is taken from there is
// not new memory.
std::vector<std::unique_ptr<void, decltype(&std::free)>> hold_free_parts(std::size_t bytes) {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);  // the C library raises its own when large blocks are freed
  std::vector<std::unique_ptr<void, decltype(&std::free)>> held;
  for (std::size_t sum = 0; sum < std::size_t{2} << 30; sum += bytes) {
    const std::size_t mapped = mallinfo2().hblks;
    held.emplace_back(std::malloc(bytes), std::free);
    if (mallinfo2().hblks == mapped) continue;
    held.pop_back();
    break;
  }
  return held;
}

TEST(NewFlows, PagesAreAskedForWhereTheDriveSays) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;  // more than the C library keeps
  const auto held = hold_free_parts(kBytes);
  const auto faults_of = [&](std::size_t touched_max, flows::Touch touch) {
    std::unique_ptr<flows::ZeroedArray<std::uint8_t>> array;
    {
      const flows::TouchedWhenMade touched(touched_max);
      array = std::make_unique<flows::ZeroedArray<std::uint8_t>>(kBytes, flows::Pages::kSmall, touch);
    }
    const Use before = used_now();
    for (std::size_t i = 0; i < kBytes; i += 4096) (*array)[i] = 1;
    return used_now().faults - before.faults;
  };
  constexpr std::int64_t kPages = kBytes / 4096;
  if (sysconf(_SC_PAGESIZE) != 4096) GTEST_SKIP() << "written for pages of 4 KiB";
  // None but the stack's and a sanitizer's own.
  EXPECT_LT(faults_of(kBytes, flows::Touch::kWhenMade), kPages / 1024);
  // At least: with transparent huge pages for all (`always`) there are fewer.
  EXPECT_GE(faults_of(kBytes, flows::Touch::kAsUsed), kPages / 512);
  EXPECT_GE(faults_of(kBytes / 2, flows::Touch::kWhenMade), kPages / 1024) << "the second half";
  EXPECT_GE(faults_of(0, flows::Touch::kWhenMade), kPages / 512);
}

// Bytes of [begin, end) that huge pages were asked for; of this process' memory altogether without a range.
std::size_t huge_bytes(std::uintptr_t begin = 0, std::uintptr_t end = UINTPTR_MAX) {
  std::ifstream maps("/proc/self/smaps");
  std::size_t sum = 0, from = 0, to = 0;
  for (std::string line; std::getline(maps, line);) {
    std::size_t low = 0, high = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &low, &high) == 2) from = low, to = high;
    if (!line.starts_with("VmFlags:") || (line + " ").find(" hg ") == std::string::npos) continue;
    sum += std::min(to, end) - std::min(std::max(from, begin), std::min(to, end));
  }
  return sum;
}

using Bytes = flows::ZeroedArray<std::uint8_t>;
std::size_t huge_bytes_of(const Bytes& array) {
  const auto begin = reinterpret_cast<std::uintptr_t>(array.data());
  return huge_bytes(begin, begin + array.size());
}

// What is not touched when made must not lie in huge pages: a new flow would wait for 2 MiB of zeros.
TEST(NewFlows, HugePagesAreAskedForAsFarAsTheBudgetGoes) {
  constexpr std::size_t kBytes = std::size_t{64} << 20, kHuge = flows::kHugePageBytes;
  const auto held = hold_free_parts(kBytes);
  if (huge_bytes_of(Bytes(kBytes, flows::Pages::kHuge)) == 0)
    GTEST_SKIP() << "this kernel has no transparent huge pages";
  EXPECT_EQ(huge_bytes_of(Bytes(kBytes, flows::Pages::kHuge)), kBytes) << "where nothing is touched all is asked for";
  EXPECT_EQ(huge_bytes_of(Bytes(kBytes, flows::Pages::kSmall)), 0u);
  for (const auto& [budget, huge] :
       std::initializer_list<std::pair<std::size_t, std::size_t>>{{0, 0},
                                                                  {kHuge - 1, 0},
                                                                  {kHuge, kHuge},
                                                                  {5 * kHuge + 4096, 5 * kHuge},
                                                                  {kBytes, kBytes},
                                                                  {SIZE_MAX, kBytes}}) {
    const flows::TouchedWhenMade touched(budget);
    const Bytes array(kBytes, flows::Pages::kHuge);
    EXPECT_EQ(huge_bytes_of(array), huge) << budget;
    EXPECT_EQ(array[kBytes - 1], 0) << "the rest is there, in small pages";
  }
  const flows::TouchedWhenMade touched(3 * kHuge);
  const Bytes first(2 * kHuge, flows::Pages::kHuge), second(kBytes, flows::Pages::kHuge),
      third(kBytes, flows::Pages::kHuge);
  EXPECT_EQ(huge_bytes_of(first), 2 * kHuge);
  EXPECT_EQ(huge_bytes_of(second), kHuge) << "what the first has left";
  EXPECT_EQ(huge_bytes_of(third), 0u);
}

// The same of whole devices, whose state wants more than there is.
TEST(NewFlows, NoKernelTakesMoreHugePagesThanTheBudget) {
  const auto held = hold_free_parts(std::size_t{64} << 20), smaller = hold_free_parts(flows::kHugePageBytes);
  if (huge_bytes_of(Bytes(std::size_t{64} << 20, flows::Pages::kHuge)) == 0)
    GTEST_SKIP() << "this kernel has no transparent huge pages";
  std::int64_t most = 0;
  for (const std::int64_t budget : {3 << 21, 32 << 21})
    for (const Case& each : all_cases(64)) {
      const std::size_t before = huge_bytes();
      const Bed bed(each.text, static_cast<std::size_t>(budget));
      const auto taken = static_cast<std::int64_t>(huge_bytes() - before);
      EXPECT_LE(taken, budget) << each.title;
      most = std::max(most, taken);
    }
  EXPECT_GT(most, 0) << "no kernel wants any";
}

}  // namespace
}  // namespace rocebox
