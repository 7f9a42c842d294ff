// SPDX-License-Identifier: BSD-3-Clause
// What a port of DPDK can do, and its queues.
#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>

#include "runtime/drives/live/driver_log.h"
#include "runtime/drives/live/eth_port.h"
#include "runtime/drives/live/rss_key.h"

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

}  // namespace rocebox
