// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/kernel/rate_queue.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::nic_model {
namespace {

constexpr std::string_view kUp = "up";
constexpr std::string_view kGroupReportsWords[] = {"off", "old", "new"};
constexpr std::string_view kEntropies[] = {"drawn", "qpns"};

}  // namespace

NicConfig::NicConfig(const Registry& registry) : controls_(registry.of_kind(kCongestionControlKind)) {
  for (const Component* type : controls_)
    control_options_.emplace_back(static_cast<CongestionControlOptions*>(type->options(registry).release()));
}

// Which is chosen, by its name or by its own options, and the options of each. Whether there is one, or may be where
// the NIC is written for several choices.
bool NicConfig::control_fields(Fields& f) {
  constexpr std::string_view kName = "congestion_control";
  std::vector<std::string_view> names = {"none"};
  for (const Component* type : controls_) names.emplace_back(type->name);
  int chosen = 0;
  f.choice(kName, chosen, names, "who sets the rates of queue pairs");
  std::string_view by = kName;
  std::vector<bool> switched;  // by their own `enabled`
  for (std::size_t i = 0; i < controls_.size(); i++) {
    const std::string_view name = controls_[i]->name;
    CongestionControlOptions& options = *control_options_[i];
    const int number = static_cast<int>(i) + 1;
    f.group(name, controls_[i]->summary, [&](Fields& g) {
      options.fields(g);
      switched.push_back(g.given("enabled"));
      if (chosen == number && !options.enabled())
        g.exclude("enabled", fmt::format("is false, and `{}: {}` says that it is used", kName, name));
    });
    if (!options.enabled() || chosen == number) continue;
    if (chosen != 0)
      f.refuse(name,
               fmt::format("is enabled, and so is `{}`: one sets the rates", names[static_cast<std::size_t>(chosen)]));
    else
      f.exclude(kName, fmt::format("says `none`, and `{}` is enabled", name));
    chosen = number;
    by = name;
  }
  for (std::size_t i = 0; i < controls_.size(); i++)
    f.has_effect(controls_[i]->name, static_cast<int>(i) + 1 == chosen || switched[i], kName,
                 fmt::format("has no effect: the congestion control is `{}`", names[static_cast<std::size_t>(chosen)]));
  const bool may_be_another = std::ranges::find(switched, true) != switched.end();
  if (chosen == 0) return may_be_another;
  control = control_options_[static_cast<std::size_t>(chosen) - 1];
  control_name = names[static_cast<std::size_t>(chosen)];
  notification_point = control->notification_point();
  if (const char* why = control->refuses(rate)) f.refuse(by, why);
  return true;
}

// What the limiters' options need beside them.
void NicConfig::limiter_effects(Fields& f, bool may_control) const {
  f.has_effect("limiter.port_rate", rate == 0 || limiter.port_rate <= rate, "rate",
               "has no effect above the port's `rate`");
  const std::string_view choice = f.given("limiter.qp_rate") ? "limiter.qp_rate" : "congestion_control";
  for (const char* name : {"limiter.qp_burst", "limiter.low_rate_loss"})
    f.has_effect(name, may_control || limiter.qp_rate != 0, choice,
                 "has no effect without a `qp_rate` or a congestion control, but for queue pairs whose program sets a "
                 "rate");
}

// Whether a running NIC can take another value of it.
bool NicConfig::can_change(std::string_view option) const {
  if (option == kUp) return true;
  return control && std::ranges::any_of(control->changeable(), [&](std::string_view name) {
           return is_within(option, fmt::format("{}.{}", control_name, name));
         });
}

void NicConfig::place(const Placement& placement) {
  mac = placement.mac;
  address = placement.address;
  if (placement.ports.empty()) return;
  ports = {placement.ports[0].name};
  rate = placement.ports[0].bits_per_second;
  // All others are behind the switch that it stands at, or are the one host at the other end.
  prefix_bits = 32;
  gateway = roce::ipv4(169, 254, 0, 1);
  neighbors = {{gateway, placement.ports[0].neighbor_mac}};
}

void NicConfig::fields(Fields& f) {
  f.boolean(kUp, up, "false: the NIC has stopped: all that comes in and all that would leave is lost");
  f.mac("mac", mac, Presence::kOptional, "MAC address; made of the IP address when left out");
  f.address("address", address, Presence::kOptional,
            "IPv4 or IPv6 address, from which its GIDs are; the link-local one of its MAC address when left out");
  f.address("address6", address6, Presence::kOptional, "a second address, of IPv6");
  f.integer("prefix_bits", prefix_bits, {0, 128}, "addresses that share so many first bits are on the link");
  f.address("gateway", gateway, Presence::kOptional, "where packets to all others go");
  f.list("neighbors", neighbors, kNeighborsMax,
         "MAC addresses that need not be asked for, and that no answer replaces");
  f.rate("rate", rate, {0, kRateMax}, "bits per second of the port; 0: as fast as it takes packets");
  f.bytes("overhead", overhead, {0, 256}, "bytes of the wire beyond a frame: preamble, FCS and gap");
  f.bytes("mtu", mtu, {0, 65535},
          "IP packets of the wire have at most so many bytes, so path MTUs have 96 less; 0: any path MTU goes, and a "
          "live port must take the largest");
  if (mtu != 0 && mtu < roce::kPathMtus[0] + kPathMtuHeaderBytes)
    f.refuse("mtu",
             fmt::format("must be {} at least, for the smallest path MTU", roce::kPathMtus[0] + kPathMtuHeaderBytes));
  f.integer("queue_pairs", queue_pairs, {1, kQpsMax}, "queue pairs that there can be at once");
  f.boolean(
      "header_only", header_only,
      "packets with a payload have their headers alone, with the length of the whole on the wire: for simulations");
  f.boolean("icrc", icrc, "store and check ICRCs; false: the port does");
  f.choice(
      "entropy", entropy, kEntropies,
      "UDP source ports of queue pairs: drawn by the run's seed; or of both queue pairs' numbers alone, as Linux's "
      "are, which are the same on hosts that have the same numbers");
  f.choice("recovery", recovery, kRecoveries,
           "what is sent again: go_back_n, as Soft-RoCE and the specification have it; or, where both ends say so, "
           "rnic_sr, selective or timeout_only, whose receivers take WRITEs out of order");
  const bool may_control = control_fields(f);
  f.group("dpa", "Datapath Accelerator: many threads that handle completions; takes memory once a workload uses it",
          [this](Fields& g) { dpa.fields(g); });
  f.duration("retransmit_stall", retransmit_stall, {0, kRetransmitStallMax},
             "rnic_sr, selective: the queue pair sends nothing for so long after a packet that it sent again");
  const std::string no_effect =
      fmt::format("has no effect with `recovery: {}`, but for workloads that have another", word_of(recovery));
  f.has_effect("retransmit_stall", recovery == Recovery::kRnicSr || recovery == Recovery::kSelective, "recovery",
               no_effect);
  f.boolean("nak_copies", nak_copies,
            "rnic_sr: a copy of a packet that was placed brings a NAK, too, where its ePSN has had none");
  f.has_effect("nak_copies", recovery == Recovery::kRnicSr, "recovery", no_effect);
  f.group("scheduler", "which queue pair sends next", [this](Fields& g) { scheduler.fields(g); });
  f.group("limiter", "token buckets of queue pairs and of the port", [this](Fields& g) { limiter.fields(g); });
  limiter_effects(f, may_control);
  f.group("pcie", "host memory behind PCIe, from which data are read", [this](Fields& g) { pcie.fields(g); });
  f.group("loopback", "the way between queue pairs of this NIC, which is not by the wire",
          [this](Fields& g) { loopback.fields(g); });
  f.boolean("obey_pauses", obey_pauses, "pause frames (802.1Qbb, 802.3x) stop queue pairs of their priorities");
  f.boolean(
      "credits", credits,
      "ACKs say how many receive requests are posted, and requesters obey; false: they say infinite, as Soft-RoCE's");
  if (credits && recovery != Recovery::kGoBackN)
    f.refuse("credits", "goes with `recovery: go_back_n` only: the others count packets in the MSN");
  f.integer("window", window, {1, kWindowMax}, "packets of a queue pair that may be on their way");
  f.integer("ack_every", ack_every, {1, 1 << 16}, "within a message, every so many packets ask for an ACK");
  f.duration("retransmission_timeout", retransmission_timeout, {0, kRetransmissionTimeoutMax},
             "time without a response after which packets are sent again; 0: as verbs' `timeout` says");
  f.duration("arp_timeout", arp_timeout, {kMillisecond, 60 * kSecond}, "time after which a neighbour is asked again");
  f.choice(
      "group_reports", group_reports, kGroupReportsWords,
      "tell switches and routers by IGMP and MLD which multicast groups queue pairs are attached to: old: IGMPv2 and "
      "MLDv1; new: IGMPv3 and MLDv2");
  f.integer("cm_response_timeout", cm_response_timeout, {0, 23},
            "RDMA CM waits 4.096 us * 2^this for a response before it asks again");
  f.integer("cm_retries", cm_retries, {0, 15}, "how often RDMA CM asks again before it gives up");
  check_addresses(f);
  fixed = flatten_all(f.values());
  std::erase_if(fixed, [&](const auto& option) { return can_change(option.first); });
  // Locally administered, from the last four bytes: equal for equal configurations.
  if (!mac)
    mac = address ? roce::Mac{0x02, 0x72, (*address)[12], (*address)[13], (*address)[14], (*address)[15]}
                  : roce::Mac{0x02, 0x72, 0, 0, 0, 1};
  if (!address) address = roce::link_local(*mac);
}

std::uint32_t NicConfig::path_mtu_max() const {
  std::uint32_t most = roce::kPathMtus[0];
  for (const std::uint32_t one : roce::kPathMtus)
    if (mtu == 0 || one + kPathMtuHeaderBytes <= mtu) most = one;
  return most;
}

}  // namespace rocebox::nic_model
