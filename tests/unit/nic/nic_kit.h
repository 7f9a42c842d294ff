// SPDX-License-Identifier: BSD-3-Clause
// Two NICs and the wire between them, and a host program of lambdas.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic_model/nic.h"
#include "runtime/component/registry.h"
#include "runtime/config/document.h"
#include "runtime/config/fields_reader.h"
#include "runtime/engine/fabric.h"
#include "runtime/engine/pipeline_device.h"

namespace rocebox::test {

/// Options of a component from YAML; fails the test where they have mistakes.
std::unique_ptr<Options> options_from(const std::string& component, const std::string& yaml);
/// Those of a kernel or device.
std::unique_ptr<KernelOptions> nic_test_options(const std::string& component, const std::string& yaml);

/// A host program that runs what it is given inside the NIC's calls, and gathers completions.
class TestHost final : public nic_model::HostProgram {
 public:
  explicit TestHost(nic_model::Nic& nic) : host(nic.host()) { number = host.submit(*this); }

  void on_start(nic_model::Host& h) override {
    for (auto& one : std::exchange(to_do, {})) one(h);
  }
  void on_completion(nic_model::Host& h, nic_model::CompletionQueue& cq) override {
    ibv_wc wc[16];
    for (int n; (n = h.poll(cq, wc)) > 0;)
      for (int i = 0; i < n; i++) {
        completions.push_back(wc[i]);
        if (on_wc) on_wc(h, wc[i]);
      }
    h.arm(cq);
  }
  void on_timer(nic_model::Host& h, Timer& timer) override {
    if (on_alarm) on_alarm(h, timer);
  }
  void on_async_event(nic_model::Host&, const nic_model::AsyncEvent& event) override { events.push_back(event.type); }

  void on_connection_event(nic_model::Host& h, const nic_model::ConnectionEvent& event) override {
    connection_events.push_back(event);
    if (on_connection) on_connection(h, event);
  }

  nic_model::Host& host;
  std::uint32_t number;
  std::vector<std::function<void(nic_model::Host&)>> to_do;
  std::vector<ibv_wc> completions;
  std::vector<ibv_event_type> events;
  std::vector<nic_model::ConnectionEvent> connection_events;
  std::function<void(nic_model::Host&, const ibv_wc&)> on_wc;
  std::function<void(nic_model::Host&, Timer&)> on_alarm;
  std::function<void(nic_model::Host&, const nic_model::ConnectionEvent&)> on_connection;
};

/// One side's queue pair with a registered buffer.
struct Side {
  TestHost* host = nullptr;
  nic_model::Qp* qp = nullptr;
  nic_model::CompletionQueue* cq = nullptr;
  nic_model::ReceiveQueue* shared = nullptr;
  std::uint32_t pd = 0, key = 0;
  std::vector<std::uint8_t> memory;
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory.data()); }
};

/// What a pair of queue pairs is made with.
struct PairOptions {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t psn = 0xFFFFF0;  ///< goes round soon
  std::size_t bytes = 1 << 20;
  std::uint32_t access =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  std::uint8_t rd_atomic = 16, timeout = 8, retry_cnt = 7, rnr_retry = 7, min_rnr_timer = 1;
  std::uint32_t send_wr = 256, receive_wr = 256;
  bool without_bytes = false;         ///< the region keeps extents alone
  std::uint32_t shared_receives = 0;  ///< of a shared receive queue; 0: each has its own
  bool solicited_only = false;        ///< the first completion event
  std::uint8_t traffic_class = 0;
  bool far_stays_in_rtr = false;                      ///< side 1's queue pair
  std::optional<nic_model::LossRecovery> recovery{};  ///< in place of the NICs' own
};

/// A UDP datagram over IPv4 between the NICs of a box, written byte by byte.
struct ForgedDatagram {
  std::uint8_t source = 1, destination = 2;  ///< 10.0.0.x
  std::uint16_t source_port = 0xC000, destination_port = 0;
  std::uint16_t checksum_off = 0;  ///< bits of the checksum that are wrong
  std::vector<std::uint8_t> payload;
};
/// Posts one datagram from the start of that side's memory, signaled.
int post_datagram(nic_model::Host& host, Side& from, const nic_model::AddressHandle& to, std::uint32_t bytes);
/// A number in network order.
void put_number(std::uint8_t* at, std::uint64_t value, unsigned bytes);

class NicBox {
 public:
  /// `nic` are options of both NICs beside their addresses, where $ is 1 or 2 as in these; `link` the wire's, `far`
  /// more of side 1's NIC, `near` more of side 0's.
  explicit NicBox(const std::string& nic = "rate: 100Gbps", const std::string& link = "delay: 1us",
                  std::uint64_t seed = 1, const std::string& far = "", const std::string& near = "");
  ~NicBox();

  /// Connects a queue pair on each side.
  void connect(const PairOptions& options = {});
  /// Takes a side's queue pair from RESET to RTS, towards queue pair `peer` of the other side.
  void make_ready(unsigned side, nic_model::Qp& qp, std::uint32_t peer, const PairOptions& options = {});
  /// Destroys both queue pairs, their shared receive queues and regions.
  void disconnect();
  /// Those of one side, in a call of its host.
  void disconnect(nic_model::Host& host, unsigned side);
  /// Runs `what` on a side's host, now.
  void on(unsigned side, std::function<void(nic_model::Host&)> what);
  /// Posts one send work request. Its identifier is `id`.
  int post(unsigned side, std::uint64_t id, ibv_wr_opcode opcode, std::uint64_t offset, std::uint32_t bytes,
           std::uint64_t remote_offset = 0, int flags = IBV_SEND_SIGNALED, std::function<void(ibv_send_wr&)> more = {});
  int post_receive(unsigned side, std::uint64_t id, std::uint64_t offset, std::uint32_t bytes);
  void run(Nanos span = 10 * kSecond);
  /// It comes to a side from the wire, now.
  void inject(unsigned side, const ForgedDatagram& datagram);

  std::uint64_t count(unsigned side, std::string_view name) const;
  /// Where both queue pairs stand, for messages of failed tests.
  std::string state() const;
  std::vector<ibv_wc>& completions(unsigned side) { return hosts[side]->completions; }

  Pool pool;
  std::vector<std::unique_ptr<KernelOptions>> options;
  std::vector<std::unique_ptr<PipelineDevice>> devices;  // near, far, wire
  std::vector<nic_model::Nic*> nics;
  std::vector<std::unique_ptr<TestHost>> hosts;
  Side sides[2];
  Fabric fabric;
  Nanos now = 0;
};

}  // namespace rocebox::test
