// SPDX-License-Identifier: BSD-3-Clause
// A forwarding function written for DPDK's SWX pipeline, on the ports that EAL has: what a switch program of ours is
// measured against. SWX's fast form is used: from the specification DPDK generates C, a compiler makes a library of it,
// and the pipeline runs that library's functions. (Its other form interprets the instructions one by one.)
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_swx_ctl.h>
#include <rte_swx_pipeline.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr unsigned kBurst = 32, kDescriptors = 512, kPoolCache = 256;
constexpr std::uint32_t kInstructions = 1000, kRunsPerFlush = 64;

std::atomic<bool> stopped{false};

[[noreturn]] void fail(const std::string& why) { throw std::runtime_error(why); }

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

File open_file(const char* path, const char* mode) {
  File file(std::fopen(path, mode));
  if (!file) fail(std::string(path) + ": " + std::strerror(errno));
  return file;
}

void generate(const char* spec, const char* code) {
  const File in = open_file(spec, "r"), out = open_file(code, "w");
  std::uint32_t line = 0;
  const char* why = "no reason given";
  if (rte_swx_pipeline_codegen(in.get(), out.get(), &line, &why) != 0)
    fail(std::string(spec) + ":" + std::to_string(line) + ": " + why);
}

// Starts every port with one queue each way, and says in SWX's words that port i of the pipeline is port i of EAL.
// Packets come from port 0 only: SWX polls its input ports in turn, one for each packet, and would mostly meet those
// that idle.
std::string start_ports(rte_mempool* pool) {
  std::string text;
  for (std::uint16_t port = 0; port < rte_eth_dev_count_avail(); port++) {  // virtual ports: numbered without holes
    char name[RTE_ETH_NAME_MAX_LEN];
    rte_eth_conf conf{};
    if (rte_eth_dev_get_name_by_port(port, name) != 0 || rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
        rte_eth_rx_queue_setup(port, 0, kDescriptors, SOCKET_ID_ANY, nullptr, pool) != 0 ||
        rte_eth_tx_queue_setup(port, 0, kDescriptors, SOCKET_ID_ANY, nullptr) != 0 || rte_eth_dev_start(port) != 0)
      fail("port " + std::to_string(port) + " does not start");
    const std::string words = std::to_string(port) + " ethdev " + name;
    if (port == 0) text += "port in " + words + " rxq 0 bsz " + std::to_string(kBurst) + "\n";
    text += "port out " + words + " txq 0 bsz " + std::to_string(kBurst) + "\n";
  }
  if (text.empty()) fail("EAL has no ports");
  return text;
}

// A line is `table NAME ENTRY`, with the entry as SWX reads it, or `group MEMBER...`, the next group's equal members.
void fill_line(rte_swx_ctl_pipeline* control, const std::string& line) {
  std::istringstream words(line);
  std::string kind, name;
  words >> kind;
  if (kind == "table") {
    words >> name >> std::ws;
    std::string rest;
    std::getline(words, rest);
    int blank = 0;
    rte_swx_table_entry* entry = rte_swx_ctl_pipeline_table_entry_read(control, name.c_str(), rest.c_str(), &blank);
    if (!entry || rte_swx_ctl_pipeline_table_entry_add(control, name.c_str(), entry) != 0) fail("no entry: " + line);
  } else if (kind == "group") {
    std::uint32_t group = 0;
    if (rte_swx_ctl_pipeline_selector_group_add(control, "equal_paths", &group) != 0) fail("no group: " + line);
    for (std::uint32_t member; words >> member;)
      if (rte_swx_ctl_pipeline_selector_group_member_add(control, "equal_paths", group, member, 1) != 0)
        fail("no member: " + line);
  } else if (!kind.empty()) {
    fail("neither `table` nor `group`: " + line);
  }
}

void fill(rte_swx_pipeline* pipeline, const char* path) {
  rte_swx_ctl_pipeline* control = rte_swx_ctl_pipeline_create(pipeline);
  if (!control) fail("SWX gives no control of its pipeline");
  std::ifstream file(path);
  if (!file) fail(std::string(path) + " cannot be read");
  for (std::string line; std::getline(file, line);) fill_line(control, line);
  if (rte_swx_ctl_pipeline_commit(control, 1) != 0) fail("SWX refuses the tables");
}

int work(void* argument) {
  auto* pipeline = static_cast<rte_swx_pipeline*>(argument);
  while (!stopped.load(std::memory_order_relaxed)) {
    for (std::uint32_t i = 0; i < kRunsPerFlush; i++) rte_swx_pipeline_run(pipeline, kInstructions);
    rte_swx_pipeline_flush(pipeline);
  }
  return 0;
}

void report(rte_swx_pipeline* pipeline, unsigned ports) {
  rte_swx_port_in_stats in{};
  rte_swx_ctl_pipeline_port_in_stats_read(pipeline, 0, &in);
  std::string sent;
  for (std::uint32_t port = 0; port < ports; port++) {
    rte_swx_port_out_stats out{};
    rte_swx_ctl_pipeline_port_out_stats_read(pipeline, port, &out);
    sent += (port ? ", " : "") + std::to_string(out.n_pkts);
  }
  std::printf("{\"rx_packets\": %lu, \"tx_packets\": [%s]}\n", in.n_pkts, sent.c_str());
}

void run(const char* library, const char* tables, std::uint32_t mbufs, double seconds) {
  rte_mempool* pool =
      rte_pktmbuf_pool_create("packets", mbufs, kPoolCache, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  if (!pool) fail("no memory for " + std::to_string(mbufs) + " packets");
  std::string ports = start_ports(pool);
  const File io(fmemopen(ports.data(), ports.size(), "r"));
  rte_swx_pipeline* pipeline = nullptr;
  const int status = rte_swx_pipeline_build_from_lib(&pipeline, "forward", library, io.get(), 0);
  if (status != 0) fail(std::string(library) + ": SWX refuses it: " + std::strerror(-status));
  fill(pipeline, tables);
  const unsigned lcore = rte_get_next_lcore(-1, 1, 0);
  if (lcore >= RTE_MAX_LCORE) fail("EAL has no worker: give it two cores with -l");
  std::signal(SIGINT, [](int) { stopped = true; });
  rte_eal_remote_launch(work, pipeline, lcore);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!stopped && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  stopped = true;
  rte_eal_mp_wait_lcore();
  report(pipeline, rte_eth_dev_count_avail());
  for (std::uint16_t port = rte_eth_dev_count_avail(); port-- > 0;) {
    rte_eth_dev_stop(port);
    rte_eth_dev_close(port);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool generates = what == "codegen" && argc >= 4, runs = what == "run" && argc >= 6;
  if (!generates && !runs) {
    std::fprintf(stderr,
                 "usage: swx_forward codegen SPEC CODE.c [EAL ARGS]\n"
                 "       swx_forward run LIBRARY TABLES MBUFS SECONDS [EAL ARGS]\n");
    return 2;
  }
  std::vector<char*> eal{argv[0]};
  eal.insert(eal.end(), argv + (generates ? 4 : 6), argv + argc);
  if (rte_eal_init(static_cast<int>(eal.size()), eal.data()) < 0) return 2;
  try {
    if (generates)
      generate(argv[2], argv[3]);
    else
      run(argv[2], argv[3], static_cast<std::uint32_t>(std::strtoul(argv[4], nullptr, 10)),
          std::strtod(argv[5], nullptr));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "swx_forward: %s\n", error.what());
    return 1;
  }
  rte_eal_cleanup();
  return 0;
}
