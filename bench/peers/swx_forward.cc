// SPDX-License-Identifier: BSD-3-Clause
// A forwarding function written for DPDK's SWX pipeline, on the ports that EAL has: what a switch program of ours is
// measured against. SWX has two forms. The fast one: from the specification DPDK generates C, a compiler makes a
// library of it, and the pipeline runs that library's functions. The other one interprets the instructions one by one.
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_swx_ctl.h>
#include <rte_swx_pipeline.h>
#include <rte_swx_port_ethdev.h>

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
#include <string_view>
#include <thread>
#include <vector>

#include "bench/peers/swx_spec.h"

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

// Starts every port with one queue each way; gives their names. EAL's ports are virtual, so numbered without holes.
std::vector<std::string> start_ports(rte_mempool* pool) {
  std::vector<std::string> names;
  for (std::uint16_t port = 0; port < rte_eth_dev_count_avail(); port++) {
    char name[RTE_ETH_NAME_MAX_LEN];
    rte_eth_conf conf{};
    if (rte_eth_dev_get_name_by_port(port, name) != 0 || rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
        rte_eth_rx_queue_setup(port, 0, kDescriptors, SOCKET_ID_ANY, nullptr, pool) != 0 ||
        rte_eth_tx_queue_setup(port, 0, kDescriptors, SOCKET_ID_ANY, nullptr) != 0 || rte_eth_dev_start(port) != 0)
      fail("port " + std::to_string(port) + " does not start");
    names.emplace_back(name);
  }
  if (names.empty()) fail("EAL has no ports");
  return names;
}

// Port i of the pipeline is port i of EAL. Packets come from port 0 only: SWX polls its input ports in turn, one for
// each packet, and would mostly meet those that idle.
rte_swx_pipeline* build_from_library(const char* library, const std::vector<std::string>& ports) {
  const std::string burst = std::to_string(kBurst);
  std::string text = "port in 0 ethdev " + ports[0] + " rxq 0 bsz " + burst + "\n";
  for (std::size_t i = 0; i < ports.size(); i++)
    text += "port out " + std::to_string(i) + " ethdev " + ports[i] + " txq 0 bsz " + burst + "\n";
  const File io(fmemopen(text.data(), text.size(), "r"));
  rte_swx_pipeline* pipeline = nullptr;
  const int status = rte_swx_pipeline_build_from_lib(&pipeline, "forward", library, io.get(), SOCKET_ID_ANY);
  if (status != 0) fail(std::string(library) + ": SWX refuses it: " + std::strerror(-status));
  return pipeline;
}

// The same with the interpreter.
rte_swx_pipeline* build_interpreter(const char* spec, const std::vector<std::string>& ports) {
  rte_swx_pipeline* pipeline = nullptr;
  rte_swx_port_ethdev_reader_params reader{ports[0].c_str(), 0, kBurst};
  if (rte_swx_pipeline_config(&pipeline, "forward", SOCKET_ID_ANY) != 0 ||
      rte_swx_pipeline_port_in_config(pipeline, 0, "ethdev", &reader) != 0)
    fail("SWX refuses the input port");
  for (std::uint32_t i = 0; i < ports.size(); i++) {
    rte_swx_port_ethdev_writer_params writer{ports[i].c_str(), 0, kBurst};
    if (rte_swx_pipeline_port_out_config(pipeline, i, "ethdev", &writer) != 0) fail("SWX refuses port " + ports[i]);
  }
  rocebox::bench::build_from_spec(pipeline, spec);
  return pipeline;
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

void run(const char* program, const char* tables, std::uint32_t mbufs, double seconds) {
  rte_mempool* pool =
      rte_pktmbuf_pool_create("packets", mbufs, kPoolCache, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  if (!pool) fail("no memory for " + std::to_string(mbufs) + " packets");
  const std::vector<std::string> ports = start_ports(pool);
  rte_swx_pipeline* const pipeline = std::string_view(program).ends_with(".spec") ? build_interpreter(program, ports)
                                                                                  : build_from_library(program, ports);
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
                 "       swx_forward run LIBRARY|FILE.spec TABLES MBUFS SECONDS [EAL ARGS]\n");
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
