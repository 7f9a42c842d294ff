// SPDX-License-Identifier: BSD-3-Clause
// What can be written in the configuration of a lab, as declared fields: the one source for reading and schema.
#pragma once
#include <string>
#include <vector>

#include "runtime/component/registry.h"
#include "runtime/config/fields_reader.h"

namespace rocebox::lab {

/// A setting that is left as the kernel has it, or set.
enum class Setting : std::uint8_t { kDefault, kOn, kOff };

/// What a host leaves to its network interface. A veth has no hardware to cut a super-packet for the wire: with these
/// two off, what leaves a host is what a wire between two NICs would carry.
struct Offloads {
  Setting tso = Setting::kOff, gso = Setting::kOff;
  Setting gro = Setting::kDefault, rx_checksum = Setting::kDefault, tx_checksum = Setting::kDefault;
  Setting rx_vlan = Setting::kDefault, tx_vlan = Setting::kDefault;
  void fields(Fields& f);
};

/// An interface of a host.
struct Interface {
  std::string name;
  std::vector<std::string> addresses;   ///< with prefix length
  std::string mac;                      ///< empty: the kernel's choice
  std::uint64_t mtu = 1500;             ///< bytes
  std::vector<std::string> neighbours;  ///< "ADDRESS MAC"
  Offloads offloads;
  void fields(Fields& f);
};

/// How a virtual machine's instructions are carried out.
enum class Accelerator : std::uint8_t { kTcg, kKvm };

/// What a host that is a virtual machine has besides.
struct VirtualMachine {
  std::uint64_t memory = std::uint64_t{512} << 20;  ///< bytes
  std::string image;                                ///< folder of what it boots; empty: made here, or found made
  Accelerator accel = Accelerator::kTcg;
  void fields(Fields& f);
};

/// What an appliance binds its wired ports to.
enum class Bind : std::uint8_t { kAfPacket, kAfXdp, kTap };

/// A command that is run in a host.
struct Traffic {
  static constexpr std::int64_t kAnyExit = -1;
  std::string name, host, run;
  bool background = false;
  std::string ready;
  std::int64_t ready_port = 0;
  Nanos timeout = 60 * kSecond;
  std::int64_t exit = 0;
  std::string output;
  bool json = false;
  std::vector<std::string> numbers;  ///< "NAME = REGULAR EXPRESSION"
  void fields(Fields& f);
};

class LabFields {
 public:
  struct Host {
    std::string name;
    Interface only;  ///< `eth0`, when there are no `interfaces`
    std::vector<Interface> interfaces;
    bool has_interfaces = false, has_only = false;
    std::vector<std::string> routes, sysctls;
    VirtualMachine machine;
    bool is_machine = false;
  };
  struct Appliance {
    std::string name, config, cores;
    Bind bind = Bind::kAfPacket;
  };

  /// `registry`: the kernels that schemas show.
  explicit LabFields(const Registry& registry) : registry_(registry) {}

  std::string lab;
  std::vector<Host> hosts;
  std::vector<Appliance> appliances;
  std::vector<std::string> wires, expect;
  std::vector<Traffic> traffic;

  /// Shows every field to `f`; reading appends to the vectors. What stands in an appliance besides its own fields is a
  /// configuration, which reading leaves to config::load_node().
  void fields(config::ConfigFields& f);

 private:
  void host_fields(config::ConfigFields& f, Host& host);
  void appliance_fields(config::ConfigFields& f, Appliance& appliance);
  const Registry& registry_;
};

/// How many commands one lab can have; more belong into a script.
inline constexpr std::size_t kTrafficMax = 256;

}  // namespace rocebox::lab
