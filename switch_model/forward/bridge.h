// SPDX-License-Identifier: BSD-3-Clause
// Bridge: L2 forwarding. Source addresses are learnt by the control plane from digests, as on hardware: the datapath
// notices an unknown one and tells; the entry stands behind all packets of the instant.
#pragma once
#include <array>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "runtime/roce/headers.h"
#include "switch_model/forward/config.h"
#include "switch_model/tables/exact_table.h"

namespace rocebox::switch_model::forward {

/// Some packets of a pass, in order.
struct Selection {
  std::array<PacketState*, kBatchMax> packets;
  unsigned count = 0;
  void add(PacketState& p) { packets[count++] = &p; }
  std::span<PacketState* const> span() const { return {packets.data(), count}; }
};

struct MacKey {
  Mac mac;
  std::uint16_t vlan;
  auto operator<=>(const MacKey&) const = default;
};

/// Where packets to a MAC address go.
struct Destination {
  std::uint32_t group = 0;  ///< of equal paths, plus one; 0: none
  std::uint16_t multicast_group = 0;
  Port port = kNoPort;
  bool operator==(const Destination&) const = default;
};
using StaticMacs = std::map<MacKey, Destination>;

/// Static addresses that are to take the place of others.
struct MacChange {
  StaticMacs all;
  std::vector<MacKey> gone;                               ///< no longer in `all`
  std::vector<std::pair<MacKey, Destination>> different;  ///< in `all`, and not as before
};

class Bridge {
 public:
  /// Without static addresses.
  Bridge(const Config& config, const Build& build);

  /// The change to `all`, beside the running bridge.
  MacChange prepare(StaticMacs all) const;
  /// Learnt addresses stay; one that has become static is so, and when the table is full of them some make room.
  void change(MacChange& change);

  /// False, and the packet is dropped, when no bridge would forward it.
  bool admit(Pass& pass, PacketState& p, const roce::Ethernet* ethernet) const {
    if (!ethernet) return refuse(pass, p, drop_runt_);
    if (ethernet->source[0] & 1) return refuse(pass, p, drop_bad_source_);
    // 01:80:c2:00:00:0x: pause, LLDP, spanning tree; they end at the next bridge (802.1Q, 8.6.3).
    constexpr std::uint8_t kReserved[] = {0x01, 0x80, 0xC2, 0x00, 0x00};
    if (ethernet->destination[0] == kReserved[0] && ethernet->destination[5] < 0x10 &&
        std::memcmp(ethernet->destination, kReserved, sizeof kReserved) == 0)
      return refuse(pass, p, drop_link_local_);
    return true;
  }

  template <class Access>
  void learn(Access& access, Pass& pass, const Selection& bridged, const Selection& routed) {
    if (!learning_) return;
    for (const Selection* packets : {&bridged, &routed}) {
      std::array<MacKey, kBatchMax> keys;
      std::array<std::uint32_t, kBatchMax> entries;
      for (unsigned i = 0; i < packets->count; i++)
        keys[i] = key_of(packets->packets[i]->packet, offsetof(roce::Ethernet, source));
      access.lookup_bulk(packets->span(), sources_, {keys.data(), packets->count}, {entries.data(), packets->count});
      for (unsigned i = 0; i < packets->count; i++) {
        PacketState& p = *packets->packets[i];
        if (entries[i] != kMiss) {
          const SourceEntry& source = sources_.value(entries[i]);
          if (source.is_static) continue;
          access.write(p, last_seen_, entries[i], pass.now());
          if (source.port == p.ingress_port) continue;
        }
        digest(pass, keys[i], p.ingress_port);
      }
    }
  }

  bool learns() const { return learning_; }

  /// For a packet to the way that it came by.
  void drop_same_port(Pass& pass, PacketState& p) { pass.drop(p, drop_same_port_); }

  template <class Access>
  void forward(Access& access, Pass& pass, const Selection& packets) {
    std::array<MacKey, kBatchMax> keys;
    std::array<std::uint32_t, kBatchMax> entries;
    for (unsigned i = 0; i < packets.count; i++)
      keys[i] = key_of(packets.packets[i]->packet, offsetof(roce::Ethernet, destination));
    access.lookup_bulk(packets.span(), destinations_, {keys.data(), packets.count}, {entries.data(), packets.count});
    for (unsigned i = 0; i < packets.count; i++) {
      PacketState& p = *packets.packets[i];
      if (entries[i] == kMiss) {
        unknown(pass, p, keys[i].mac[0] & 1);
        continue;
      }
      const Destination& to = destinations_.value(entries[i]);
      p.metadata[group_word_] = to.group;
      p.multicast_group = to.multicast_group;
      if (to.port == kNoPort) continue;
      p.egress_port = to.port;
      if (to.port == p.ingress_port) pass.drop(p, drop_same_port_);
    }
  }

  void on_timer(Pass& pass, Timer& timer);
  void report(Report& report) const;

 private:
  struct SourceEntry {
    Port port;
    bool is_static;
  };
  struct Digest {
    MacKey key;
    Port port;
  };

  static MacKey key_of(Packet packet, std::uint32_t offset) {
    const std::uint8_t* data = packet.data();
    MacKey key;
    std::memcpy(key.mac.data(), data + offset, key.mac.size());
    key.vlan = 0;
    if (data[12] == 0x81 && data[13] == 0 && packet.size() >= sizeof(roce::Ethernet) + sizeof(roce::VlanTag))
      key.vlan = static_cast<std::uint16_t>((data[14] << 8 | data[15]) & 0x0FFF);
    return key;
  }
  static bool refuse(Pass& pass, PacketState& p, Counter& reason) {
    pass.drop(p, reason);
    return false;
  }
  void unknown(Pass& pass, PacketState& p, bool multicast) {
    if (unknown_ == Unknown::kDropAll || (unknown_ == Unknown::kDrop && !multicast)) return pass.drop(p, drop_unknown_);
    flooded_.add();
    p.multicast_group = kFloodGroup;
  }
  void set_static(const MacKey& key, const Destination& to);
  bool make_room();
  void digest(Pass& pass, const MacKey& key, Port port);
  void insert_digests(Pass& pass);
  void forget(Pass& pass);

  const SwitchInfo& info_;
  unsigned pipes_;
  bool learning_;
  Unknown unknown_;
  Nanos mac_age_;
  const unsigned& group_word_;  // reserved by the bridge's owner
  ExactTable<MacKey, SourceEntry> sources_;
  RegisterArray<Nanos> last_seen_;
  ExactTable<MacKey, Destination> destinations_;
  std::vector<Digest> digests_;
  std::vector<MacKey> learnt_;  // dynamic entries, for ageing
  StaticMacs statics_;
  Timer learn_timer_, age_timer_;
  Counter &drop_runt_, &drop_bad_source_, &drop_link_local_, &drop_unknown_, &drop_same_port_, &flooded_, &macs_learnt_,
      &macs_moved_, &macs_aged_, &macs_displaced_, &mac_table_full_, &digests_lost_;
};

}  // namespace rocebox::switch_model::forward
