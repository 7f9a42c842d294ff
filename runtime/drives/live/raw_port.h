// SPDX-License-Identifier: BSD-3-Clause
// RawPort: a network interface through a packet socket, transparent to what hosts on this machine leave to hardware.
#pragma once
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <vector>

#include "runtime/drives/live/live_port.h"
#include "runtime/limits.h"

namespace rocebox {

/// DPDK's own AF_PACKET driver (22.11) makes the kernel put IPv4 fragments together before they arrive, cuts what is
/// then longer than its frames, and loses what the sender left to offload; so a bump on a veth pair would not be
/// transparent. This port asks the kernel for the virtio header of each packet (PACKET_VNET_HDR) and gives it back when
/// the packet leaves: unfinished checksums and super-packets (TSO, UDP GSO) pass as they would over the veth itself.
/// Receiving is a shared ring without system calls; sending is one call a burst.
class RawPort final : public LivePort {
 public:
  RawPort(const config::LiveBinding& binding, const std::string& by);
  ~RawPort() override;

  LivePortAbility ability() const override { return {}; }
  std::uint64_t packets_needed(unsigned queues) const override { return 8ull * kBatchMax * queues; }
  void set_up(unsigned queues, unsigned hash_entries, Pool& pool) override;
  void start() override;
  unsigned receive(unsigned queue, std::span<Packet> room) override;
  Sent send(unsigned queue, std::span<Packet> packets) override;
  bool fills_metadata() const override { return true; }
  bool brings_offload() const override { return true; }
  bool takes_shared() const override { return true; }
  int wake_descriptor(unsigned) override { return socket_; }
  void wake_on(unsigned queue, bool on) override;
  std::uint32_t mtu() const override { return mtu_; }
  int interface_index() const override { return index_; }
  bool returns() const override { return true; }
  LivePortCounts counts() const override;
  LinkState link() const override;
  LinkState look() override;

 private:
  const std::string& interface() const { return binding_.live.af_packet; }
  std::uint8_t* frame(unsigned number) const { return ring_ + std::size_t{number} * frame_bytes_; }
  bool is_bound() const;
  bool be_promiscuous(int index);
  bool bind_to(int index);
  void return_to(int index);
  PacketPtr take_frame(const tpacket2_hdr& header);
  PacketPtr take_long(const tpacket2_hdr& header);
  void set(int option, int value, const char* what);

  int socket_ = -1;
  std::atomic<int> index_{-1};
  std::atomic<bool> started_{false};
  std::atomic<bool> is_up_{true};  // as the last look found it
  std::uint32_t frame_bytes_ = 0, frames_ = 0, at_ = 0;
  std::uint8_t* ring_ = nullptr;
  std::uint32_t mtu_ = 0;
  int mtu_before_ = 0;  // of an interface that a run which does not start leaves as it was; 0: not changed, or started
  std::atomic<std::uint32_t> segment_bytes_max_{0};  // frame that the interface takes without segmentation
  Pool* pool_ = nullptr;
  Counter rx_no_packet_, rx_errors_, rx_other_mac_;
  mutable Counter rx_missed_;
  std::array<mmsghdr, kBatchMax> messages_{};
  std::array<std::array<iovec, 2>, kBatchMax> parts_{};
  std::array<HostOffload, kBatchMax> headers_{};
};

}  // namespace rocebox
