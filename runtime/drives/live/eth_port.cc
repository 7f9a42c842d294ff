// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/eth_port.h"

#include <fmt/format.h>
#include <net/if.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "runtime/drives/live/driver_log.h"
#include "runtime/drives/live/interface.h"
#include "runtime/drives/live/memif_socket.h"
#include "runtime/kernel/kernel.h"
#include "runtime/process/capabilities.h"

namespace rocebox {
namespace {

using config::PortKind;

// Drivers return -1 for anything, which would read as a lack of permission.
std::string reason(int error) { return error == -1 ? "" : fmt::format(": {}", rte_strerror(-error)); }

}  // namespace

EthPort::EthPort(const config::LiveBinding& binding, const std::string& by, unsigned serial, RingPairs& rings)
    : LivePort(binding, by) {
  attach(serial, rings);
  attached_ = true;
  find_ability();
}

EthPort::~EthPort() {
  if (!attached_) return;
  if (started_) rte_eth_dev_stop(id_);
  if (!started_ && mtu_before_) rte_eth_dev_set_mtu(id_, mtu_before_);
  rte_eth_dev_close(id_);
}

void EthPort::attach(unsigned serial, RingPairs& rings) {
  const config::LivePortOptions& live = binding_.live;
  if (live.kind == PortKind::kAfXdp && if_nametoindex(live.af_xdp.c_str()) == 0)
    refuse(fmt::format("there is no network interface `{}`; `ip link` lists those of this network namespace",
                       live.af_xdp));
  if (live.kind == PortKind::kTap && live.tap.size() >= IFNAMSIZ)
    refuse(fmt::format("the name of an interface has at most {} characters", IFNAMSIZ - 1));
  if (live.kind == PortKind::kTap && if_nametoindex(live.tap.c_str()) != 0)
    refuse(fmt::format("an interface `{}` exists already; choose another name", live.tap));
  check_permission();
  if (live.kind == PortKind::kAfXdp) index_ = static_cast<int>(if_nametoindex(live.af_xdp.c_str()));
  const std::string name = fmt::format("_rb{}", serial);
  switch (live.kind) {
    case PortKind::kAfXdp:
      return probe(fmt::format("net_af_xdp{},iface={}", name, live.af_xdp), "net_af_xdp" + name);
    case PortKind::kTap:
      return probe(fmt::format("net_tap{},iface={}", name, live.tap), "net_tap" + name);
    case PortKind::kMemif:
      remove_stale_memif(live.memif);
      return probe(fmt::format("net_memif{},role={},id={},socket={},socket-abstract=no", name,
                               live.memif.role == 0 ? "server" : "client", live.memif.id, live.memif.socket),
                   "net_memif" + name);
    case PortKind::kNull:
      return probe(
          fmt::format("net_null{},size={},copy={}", name, live.net_null.packet_bytes, live.net_null.copy ? 1 : 0),
          "net_null" + name);
    case PortKind::kPci:
      if (rte_eth_dev_get_port_by_name(live.pci.c_str(), &id_) == 0) return;
      refuse("no DPDK driver has this device; bind it to vfio-pci (dpdk-devbind.py), or name a NIC that is there");
    case PortKind::kRing:
      if (std::string why; !rings.make_port(live.ring, static_cast<unsigned>(live.rx_descriptors), id_, why))
        refuse(why);
      return;
    case PortKind::kDevargs:
      return probe(live.devargs, live.devargs.substr(0, live.devargs.find(',')));
    case PortKind::kAfPacket:
    case PortKind::kUnbound:
      break;
  }
  refuse("is bound to nothing");
}

// Before the driver is asked, whose own words name no capability.
void EthPort::check_permission() const {
  std::string missing;
  if (binding_.live.kind == PortKind::kAfXdp)
    missing = missing_capabilities({Capability::kNetRaw, Capability::kNetAdmin, Capability::kSysAdmin});
  if (binding_.live.kind == PortKind::kTap) missing = missing_capabilities({Capability::kNetAdmin});
  if (!missing.empty())
    refuse(fmt::format("no permission: run as root, or give the capability {}; `man rocebox` has a table", missing));
}

void EthPort::probe(const std::string& devargs, const std::string& name) {
  std::string cause;
  int result = 0;
  {
    DriverLog log;
    result = rte_dev_probe(devargs.c_str());
    cause = log.cause();
  }
  if (result < 0) {
    if (binding_.live.kind == PortKind::kMemif) refuse(explain_memif(binding_.live.memif) + cause);
    if (binding_.live.kind == PortKind::kAfXdp && result == -EBUSY) cause = ": another process has it" + cause;
    refuse(fmt::format("DPDK cannot open `{}`{}{}", devargs, reason(result), cause));
  }
  if (rte_eth_dev_get_port_by_name(name.c_str(), &id_) != 0)
    refuse(fmt::format("`{}` is no network device of DPDK", devargs));
}

void EthPort::start() {
  DriverLog log;
  if (const int error = rte_eth_dev_start(id_); error < 0)
    refuse(
        fmt::format("it does not start{}{}",
                    binding_.live.kind == PortKind::kMemif ? ": " + explain_memif(binding_.live.memif) : reason(error),
                    log.cause()));
  started_ = true;
  if (is_tap()) tap_ = find_tap(binding_.live.tap);
  if (const int error = binding_.live.promiscuous ? rte_eth_promiscuous_enable(id_) : rte_eth_promiscuous_disable(id_);
      error < 0 && error != -ENOTSUP)
    refuse(fmt::format("promiscuous mode cannot be set: {}", rte_strerror(-error)));
}

unsigned EthPort::receive(unsigned queue, std::span<Packet> room) {
  return rte_eth_rx_burst(id_, static_cast<std::uint16_t>(queue), reinterpret_cast<rte_mbuf**>(room.data()),
                          static_cast<std::uint16_t>(room.size()));
}

// A TAP that is set down or gone takes nothing, as one that is busy; what is not taken then has nowhere to wait for.
LivePort::Sent EthPort::send(unsigned queue, std::span<Packet> packets) {
  const unsigned sent =
      rte_eth_tx_burst(id_, static_cast<std::uint16_t>(queue), reinterpret_cast<rte_mbuf**>(packets.data()),
                       static_cast<std::uint16_t>(packets.size()));
  const auto count = static_cast<unsigned>(packets.size());
  if (sent == count || !is_tap() || is_up_.load(std::memory_order_relaxed)) return {sent, 0};
  rte_pktmbuf_free_bulk(reinterpret_cast<rte_mbuf**>(packets.data() + sent), count - sent);
  return {count, count - sent};
}

int EthPort::wake_descriptor(unsigned queue) {
  const DriverLog log;  // of a driver that has no interrupts after all
  return interrupts_ ? rte_eth_dev_rx_intr_ctl_q_get_fd(id_, static_cast<std::uint16_t>(queue)) : -1;
}

void EthPort::wake_on(unsigned queue, bool on) {
  if (on)
    rte_eth_dev_rx_intr_enable(id_, static_cast<std::uint16_t>(queue));
  else
    rte_eth_dev_rx_intr_disable(id_, static_cast<std::uint16_t>(queue));
}

LivePortCounts EthPort::counts() const {
  rte_eth_stats stats{};
  rte_eth_stats_get(id_, &stats);
  return {.rx_missed = stats.imissed,
          .rx_errors = stats.ierrors,
          .rx_no_packet = stats.rx_nombuf,
          // A TAP counts a packet there each time that the kernel bids it wait.
          .tx_errors = is_tap() ? 0 : stats.oerrors};
}

// The drivers of TAP and AF_XDP know the interface by its name, or not at all.
LinkState EthPort::link() const {
  if (tap_ >= 0) return tap_state(tap_);
  if (index_ >= 0) return interface_state(index_);
  if (rte_eth_dev_is_removed(id_) == 1) return LinkState::kGone;
  rte_eth_link link{};
  return rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP ? LinkState::kUp
                                                                                         : LinkState::kDown;
}

LinkState EthPort::look() {
  const LinkState state = link();
  is_up_.store(state == LinkState::kUp, std::memory_order_relaxed);
  return state;
}

}  // namespace rocebox
