// SPDX-License-Identifier: BSD-3-Clause
// The options of an inline kernel and of a kind of device, and how a kernel becomes a component.
#pragma once
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/component/component.h"
#include "runtime/component/fields.h"
#include "runtime/component/registry.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/placement.h"
#include "runtime/limits.h"

namespace rocebox {

inline constexpr char kKernelKind[] = "kernel", kDeviceKind[] = "device";

/// IP datagrams of up to `bytes` bytes that a kernel makes itself for its output `out`: a live port with a smaller MTU
/// there is refused, with `mend`, what to write instead.
struct MadeDatagrams {
  Port out;
  std::uint64_t bytes;
  std::string mend;
};

/// An address of a device, and the option that gives it.
struct OwnAddress {
  const char* option;
  std::string text;
  bool is_mac = false;  ///< it means this device up to the next one that routes
};

/// What a wire does to every packet of one direction.
struct WireFacts {
  std::uint64_t bits_per_second = 0;  ///< 0: no limit
  Nanos delay = 0;
};

/// What can be had of a kernel's options once they are filled. All but fields() is const, and may be called on any
/// thread.
class KernelOptions : public Options {
 public:
  virtual Shape shape() const { return Shape::kTwoSided; }
  virtual Port inputs() const { return 2; }
  virtual Port outputs() const { return 2; }

  /// A new instance. Throws ConfigError for what fields cannot say.
  virtual std::unique_ptr<Kernel> make(Stats& stats) const = 0;
  /// The same, held to what its hardware can do: it reports `layout`, what it takes of it, and the table `violations`,
  /// rows of `what` and `times`. Null: it models no hardware.
  virtual std::unique_ptr<Kernel> make_strict(Stats& /*stats*/) const { return nullptr; }
  virtual bool models_hardware() const { return false; }
  /// These options for an instance that runs with others: only what no packet changes may be looked at. Throws
  /// ConfigError that names what cannot be changed so.
  virtual std::unique_ptr<Change> change(const Kernel& running) const = 0;

  /// Bytes that an instance takes of EAL's memory, such as DPDK's tables, those of a change included.
  virtual std::uint64_t eal_bytes() const { return 0; }
  virtual std::vector<MadeDatagrams> made_datagrams() const { return {}; }
  /// The port of a two-sided kernel that is one end of a pair at which the other one, of its own kind, must face it.
  virtual std::optional<Port> faces_its_like() const { return {}; }
  /// Of a kernel that links are made of: what it does to packets that come in by `from`.
  virtual WireFacts wire_facts(Port /*from*/) const { return {}; }
  /// Packets leave it although none has come in.
  virtual bool makes_packets() const { return false; }
};

/// A kernel that is a whole device: its inputs and outputs are the device's ports.
class DeviceOptions : public KernelOptions {
 public:
  Shape shape() const override { return Shape::kOneWay; }
  Port inputs() const override { return static_cast<Port>(ports().size()); }
  Port outputs() const override { return static_cast<Port>(ports().size()); }
  /// Their names, in order.
  virtual const std::vector<std::string>& ports() const = 0;
  /// Before the fields are filled, for a device that a topology places: what is not written is as `placement` says.
  virtual void place(const Placement& /*placement*/) {}
  /// Bytes held of nearly all packets that its host sends: where there are many hosts, the pool has such for them.
  virtual std::uint32_t packet_bytes() const { return 2048; }
  /// Packets that one of its connections may have on their way, for which the pool has room, too; 0: it does not say.
  virtual std::uint32_t packets_in_flight() const { return 0; }
  /// Bits per second at which it sends by that port; 0: as fast as packets come, or it does not say.
  virtual std::uint64_t port_rate(Port /*port*/) const { return 0; }
  /// By what others send to it: no other device that links join to it may have one of them.
  virtual std::vector<OwnAddress> own_addresses() const { return {}; }
  /// Whether packets that go through it get other MAC addresses.
  virtual bool routes() const { return false; }
  /// Why packets of one flow cannot be dealt out to several instances; null: they can.
  virtual const char* one_core_because() const { return nullptr; }
};

/// Rows of component_kinds().
inline constexpr ComponentKind kKernels = {
    kKernelKind, [](const Component& row, const Options& options) -> const char* {
      const auto* kernel = dynamic_cast<const KernelOptions*>(&options);
      if (!kernel) return "has options of another kind: make its row by two_sided_kernel() or one_way_kernel()";
      if (row.is_wire && kernel->shape() != Shape::kTwoSided) return "is no wire: that has two sides";
      return nullptr;
    }};
inline constexpr ComponentKind kDevices = {kDeviceKind,
                                           [](const Component& row, const Options& options) -> const char* {
                                             if (!dynamic_cast<const DeviceOptions*>(&options))
                                               return "has options of another kind: use device_kind()";
                                             return row.is_wire ? "is no wire: that is a kernel" : nullptr;
                                           }};

namespace detail {
template <class K>
concept Changeable = requires(const K& kernel, const typename K::Config& config) {
  { kernel.prepare(config) } -> std::same_as<std::unique_ptr<Change>>;
};

template <class K, Shape kShape, Port kInputs, Port kOutputs>
class OptionsOf final : public KernelOptions {
 public:
  void fields(Fields& fields) override { config_.fields(fields); }
  Shape shape() const override { return kShape; }
  Port inputs() const override { return kInputs; }
  Port outputs() const override { return kOutputs; }
  std::unique_ptr<Kernel> make(Stats& stats) const override { return std::make_unique<K>(config_, stats); }
  std::unique_ptr<Change> change(const Kernel& running) const override {
    if constexpr (Changeable<K>) return static_cast<const K&>(running).prepare(config_);
    throw ConfigError("none of its options can be changed while it runs");
  }
  std::vector<MadeDatagrams> made_datagrams() const override {
    if constexpr (requires { config_.made_datagrams(); }) return config_.made_datagrams();
    return {};
  }
  std::optional<Port> faces_its_like() const override {
    if constexpr (requires { config_.faces_its_like(); }) return config_.faces_its_like();
    return {};
  }
  WireFacts wire_facts(Port from) const override {
    if constexpr (requires { config_.wire_facts(from); }) return config_.wire_facts(from);
    return {};
  }

 private:
  typename K::Config config_;
};

template <class O>
std::unique_ptr<Options> new_options(const Registry& registry) {
  if constexpr (std::constructible_from<O, const Registry&>)
    return std::make_unique<O>(registry);
  else
    return std::make_unique<O>();
}
}  // namespace detail

/// A two-sided inline kernel: `K::Config` with `fields(Fields&)`, and `K(const Config&, Stats&)`. Where it has
/// `std::unique_ptr<Change> prepare(const Config&) const`, its options can be changed while it runs; where its Config
/// has `made_datagrams()`, `faces_its_like()` or `wire_facts(from)`, these say what KernelOptions' do.
template <class K>
constexpr Component two_sided_kernel(const char* name, const char* summary, const Example* examples = nullptr) {
  return {kComponentAbi, kKernelKind, name, summary, &detail::new_options<detail::OptionsOf<K, Shape::kTwoSided, 2, 2>>,
          examples};
}

/// A kernel with its own numbered inputs and outputs.
template <class K, Port kInputs, Port kOutputs>
constexpr Component one_way_kernel(const char* name, const char* summary, const Example* examples = nullptr) {
  static_assert(kInputs > 0 && kInputs <= kPortsMax && kOutputs <= kPortsMax);
  return {kComponentAbi,
          kKernelKind,
          name,
          summary,
          &detail::new_options<detail::OptionsOf<K, Shape::kOneWay, kInputs, kOutputs>>,
          examples};
}

/// A kind of device: `O` is its DeviceOptions, made of a registry or of nothing.
template <class O>
constexpr Component device_kind(const char* name, const char* summary, const Example* examples = nullptr) {
  return {kComponentAbi, kDeviceKind, name, summary, &detail::new_options<O>, examples};
}

}  // namespace rocebox
