// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/eth_port.h"

#include <fmt/format.h>
#include <net/if.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>

#include "runtime/drives/live/driver_log.h"
#include "runtime/drives/live/interface.h"
#include "runtime/drives/live/memif_socket.h"
#include "runtime/drives/live/rss_key.h"
#include "runtime/kernel/kernel.h"
#include "runtime/process/capabilities.h"

namespace rocebox {
namespace {

using config::PortKind;

// Hashes of both addresses, and of nothing else. Those without which UDP would not be spread: i40e, for one, has no
// hash of all IPv4, and its hash of UDP takes ports in, by which a QP's data and its ACKs part.
constexpr std::uint64_t kAllIp = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6;
constexpr std::uint64_t kAddressHash = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER |
                                       RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER;

// What a port with queues of its own in hardware keeps full of packets from the pool.
bool fills_queues(config::PortKind kind) { return kind == PortKind::kPci || kind == PortKind::kDevargs; }

// Drivers return -1 for anything, which would read as a lack of permission.
std::string reason(int error) { return error == -1 ? "" : fmt::format(": {}", rte_strerror(-error)); }

// Some drivers state the longest frame instead.
std::uint32_t mtu_max(const rte_eth_dev_info& info) {
  if (info.max_mtu >= RTE_ETHER_MIN_MTU && info.max_mtu != UINT16_MAX) return info.max_mtu;
  return info.max_rx_pktlen > 2 * RTE_ETHER_HDR_LEN ? info.max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN
                                                    : UINT16_MAX;
}

// Devices that hash nothing although they say they do, or hash by ports too, so that a QP's data and its ACKs part.
bool hash_is_real(const char* driver) {
  const std::string_view name(driver);
  return !name.starts_with("net_") || name == "net_ixgbe" || name == "net_ice" || name == "net_e1000_igb";
}

// Virtual devices that read what they send, wherever it lies. Not among them: rings, whose other end may write it, and
// AF_XDP, which wants it in the packet's own buffer.
bool only_reads(std::string_view driver) {
  constexpr std::string_view kDrivers[] = {"net_null", "net_tap", "net_af_packet", "net_pcap"};
  return std::ranges::find(kDrivers, driver) != std::end(kDrivers);
}

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

void EthPort::find_ability() {
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(id_, &info) != 0) refuse("its driver tells nothing of it");
  ability_.queues = std::min<unsigned>(info.max_rx_queues, info.max_tx_queues);
  takes_shared_ = binding_.live.kind == PortKind::kPci || only_reads(info.driver_name);
  // A port whose packets all look alike to a hash (or that makes them itself) may have queues for all the same.
  const bool plain = binding_.live.kind == PortKind::kNull;
  if (plain) ability_.hash_entries = RTE_ETH_RSS_RETA_SIZE_64;
  if (hash_is_real(info.driver_name) && (info.flow_type_rss_offloads & kAllIp) == kAllIp && info.reta_size)
    ability_.hash_entries = info.reta_size;
}

std::uint64_t EthPort::packets_needed(unsigned queues) const {
  const config::LivePortOptions& live = binding_.live;
  const std::int64_t queue = fills_queues(live.kind) ? live.rx_descriptors + live.tx_descriptors : 0;
  return (static_cast<std::uint64_t>(queue) + 8 * kBatchMax) * queues;
}

void EthPort::set_up(unsigned queues, unsigned hash_entries, Pool& pool) {
  const config::LivePortOptions& live = binding_.live;
  std::uint16_t mtu = 0;
  if (rte_eth_dev_get_mtu(id_, &mtu) != 0 || mtu == 0) mtu = 1500;
  const std::uint16_t before = mtu;
  if (live.mtu) mtu = static_cast<std::uint16_t>(live.mtu);
  const bool spread = hash_entries != 0 && queues > 1 && live.kind != PortKind::kNull;
  DriverLog log;
  configure(queues, spread, mtu);
  set_up_queues(queues, mtu, pool);
  if (live.mtu && live.kind != PortKind::kPci)
    if (const int error = rte_eth_dev_set_mtu(id_, mtu); error < 0 && error != -ENOTSUP)
      refuse(fmt::format("its MTU cannot be set to {}: {}{}", mtu, rte_strerror(-error),
                         error == -EPERM ? "; that needs the capability CAP_NET_ADMIN" : ""));
  if (live.mtu && live.kind == PortKind::kAfXdp) mtu_before_ = before;
  if (live.kind == PortKind::kPci || live.kind == PortKind::kAfXdp || live.kind == PortKind::kTap) mtu_ = mtu;
  if (spread) spread_over(queues, hash_entries);
}

void EthPort::configure(unsigned queues, bool spread, std::uint16_t mtu) {
  rte_eth_dev_info info{};
  rte_eth_dev_info_get(id_, &info);
  if (const std::uint32_t most = mtu_max(info); binding_.live.mtu && mtu > most)
    refuse(fmt::format("its MTU can be at most {} with this driver, not {}", most, mtu));
  rte_eth_conf conf{};
  auto key = symmetric_rss_key();
  if (spread) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_key = key.data();
    conf.rx_adv_conf.rss_conf.rss_key_len = info.hash_key_size ? info.hash_key_size : 40;
    conf.rx_adv_conf.rss_conf.rss_hf = kAddressHash & info.flow_type_rss_offloads;
  }
  if (binding_.live.kind == PortKind::kPci) conf.rxmode.mtu = mtu;
  conf.intr_conf.rxq = 1;
  const auto n = static_cast<std::uint16_t>(queues);
  int error = rte_eth_dev_configure(id_, n, n, &conf);
  if (error < 0) {  // not every driver can wake a core
    conf.intr_conf.rxq = 0;
    error = rte_eth_dev_configure(id_, n, n, &conf);
  }
  if (error < 0) refuse(fmt::format("{} queues cannot be configured: {}", queues, rte_strerror(-error)));
  interrupts_ = conf.intr_conf.rxq != 0;
}

void EthPort::set_up_queues(unsigned queues, std::uint16_t mtu, Pool& pool) {
  auto rx = static_cast<std::uint16_t>(binding_.live.rx_descriptors);
  auto tx = static_cast<std::uint16_t>(binding_.live.tx_descriptors);
  if (const int error = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx, &tx); error < 0)
    refuse(fmt::format("its queues cannot have that length: {}", rte_strerror(-error)));
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(id_, &info) != 0) refuse("its driver tells nothing of it");
  // Packets are from several mempools, and may have their bytes together: drivers must not put them back in haste.
  rte_eth_txconf tx_conf = info.default_txconf;
  tx_conf.offloads &= ~std::uint64_t{RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE};
  rte_mempool* mempool = pool.mempool_for(mtu + 26u);  // Ethernet header, two VLAN tags, FCS
  for (std::uint16_t queue = 0; queue < queues; queue++) {
    int error = rte_eth_rx_queue_setup(id_, queue, rx, static_cast<unsigned>(SOCKET_ID_ANY), nullptr, mempool);
    if (error == 0) error = rte_eth_tx_queue_setup(id_, queue, tx, static_cast<unsigned>(SOCKET_ID_ANY), &tx_conf);
    if (error < 0) refuse(fmt::format("queue {} cannot be set up: {}", queue, rte_strerror(-error)));
  }
}

void EthPort::spread_over(unsigned queues, unsigned hash_entries) {
  rte_eth_dev_info info{};
  rte_eth_dev_info_get(id_, &info);
  std::array<rte_eth_rss_reta_entry64, RTE_ETH_RSS_RETA_SIZE_512 / RTE_ETH_RETA_GROUP_SIZE> table{};
  for (unsigned entry = 0; entry < info.reta_size && entry < RTE_ETH_RSS_RETA_SIZE_512; entry++) {
    rte_eth_rss_reta_entry64& group = table[entry / RTE_ETH_RETA_GROUP_SIZE];
    group.mask = ~std::uint64_t{0};
    // Every port of the run reads as many bits of the hash, however long its own table is.
    group.reta[entry % RTE_ETH_RETA_GROUP_SIZE] = static_cast<std::uint16_t>(entry % hash_entries % queues);
  }
  if (const int error = rte_eth_dev_rss_reta_update(id_, table.data(), info.reta_size); error < 0)
    refuse(fmt::format("packets cannot be spread over its queues: {}", rte_strerror(-error)));
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
