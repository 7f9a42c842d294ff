// SPDX-License-Identifier: BSD-3-Clause
// Addresses of a NIC: what they can be, and which of them a packet is from.
#include <fmt/format.h>

#include <algorithm>

#include "nic_model/config.h"
#include "runtime/roce/unicast.h"

namespace rocebox::nic_model {
namespace {

const char* family_of(const roce::IpAddress& address) { return roce::is_ipv4(address) ? "IPv4" : "IPv6"; }

// Whether it is one that a host can have, or none; `whose` is told what it cannot be.
bool require_hosts(Fields& f, std::string_view name, const std::optional<roce::IpAddress>& address,
                   std::string_view whose) {
  const char* const why = address ? roce::why_no_hosts(*address) : nullptr;
  if (why) f.refuse(name, fmt::format("is {}, which no {} can have: give it a host's", why, whose));
  return !why;
}

void require_stations(Fields& f, const std::optional<roce::Mac>& mac, std::string_view whose) {
  if (const char* why = mac ? roce::why_no_stations(mac->data()) : nullptr)
    f.refuse("mac", fmt::format("is {}, which no {} can have: give it a station's", why, whose));
}

}  // namespace

void NeighborConfig::fields(Fields& f) {
  f.address("address", address, Presence::kRequired, "IP address");
  f.mac("mac", mac, Presence::kRequired, "its MAC address");
  require_hosts(f, "address", address, "neighbour");
  require_stations(f, mac, "neighbour");
}

// Before addresses that were left out are made.
void NicConfig::check_addresses(Fields& f) const {
  require_stations(f, mac, "NIC");
  if (!require_hosts(f, "address", address, "NIC") || !require_hosts(f, "address6", address6, "NIC")) return;
  if (address6 && roce::is_ipv4(*address6))
    f.refuse("address6", "is an IPv4 address: write one of IPv6");
  else if (address6 && !address)
    f.refuse("address6", "goes beside an IPv4 `address`: write it as `address`");
  else if (address6 && !roce::is_ipv4(*address))
    f.refuse("address6", "goes beside an IPv4 `address`, and that is of IPv6: leave one out");
  if (gateway && require_hosts(f, "gateway", gateway, "gateway")) check_gateway(f);
  std::vector<roce::IpAddress> known;
  for (const NeighborConfig& row : neighbors)
    if (row.address) known.push_back(*row.address);
  std::ranges::sort(known);
  if (const auto twice = std::ranges::adjacent_find(known); twice != known.end())
    f.refuse("neighbors", fmt::format("has {} twice: leave one out", roce::address_text(*twice)));
  for (const auto& own : {address, address6})
    if (own && std::ranges::binary_search(known, *own))
      f.refuse("neighbors", fmt::format("has the NIC's own address, {}: leave it out", roce::address_text(*own)));
}

// The NIC asks for its MAC address from an address of its own, unless that is written.
void NicConfig::check_gateway(Fields& f) const {
  const auto is_gateway = [this](const NeighborConfig& row) { return row.address == gateway; };
  if (gateway == address || gateway == address6)
    f.refuse("gateway", "is the NIC's own address: give the router's");
  else if (!has_source_for(*gateway) && std::ranges::none_of(neighbors, is_gateway))
    f.refuse("gateway", fmt::format("is of {}, and the NIC has no address of that: give it one as its {}, or list the "
                                    "gateway in `neighbors`",
                                    family_of(*gateway), option_for(*gateway)));
}

// Where the address is to be written that the NIC lacks.
const char* NicConfig::option_for(const roce::IpAddress& destination) {
  return roce::is_ipv4(destination) ? "`address` (an IPv6 one that is there goes to `address6`)" : "`address6`";
}

std::string NicConfig::lacks_source_for(const roce::IpAddress& destination) const {
  if (has_source_for(destination)) return "";
  return fmt::format("has no {} address: give it one as its {}", family_of(destination), option_for(destination));
}

bool NicConfig::has_source_for(const roce::IpAddress& destination) const {
  return roce::is_ipv4(source_for(destination)) == roce::is_ipv4(destination);
}

roce::IpAddress NicConfig::source_for(const roce::IpAddress& destination) const {
  if (address && roce::is_ipv4(*address) == roce::is_ipv4(destination)) return *address;
  return address6.value_or(address.value_or(roce::IpAddress{}));
}

bool NicConfig::is_on_link(const roce::IpAddress& destination) const {
  const roce::IpAddress own = source_for(destination);
  unsigned bits = static_cast<unsigned>(prefix_bits) + (roce::is_ipv4(own) ? 96 : 0);
  bits = std::min(bits, 128u);
  for (unsigned i = 0; i < bits; i++)
    if ((own[i / 8] ^ destination[i / 8]) >> (7 - i % 8) & 1) return false;
  return true;
}

}  // namespace rocebox::nic_model
