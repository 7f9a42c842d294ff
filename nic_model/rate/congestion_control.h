// SPDX-License-Identifier: BSD-3-Clause
// Congestion control as a component: an Observer with options, which `nic: {congestion_control: NAME}` chooses.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nic_model/rate/observer.h"
#include "runtime/kernel/kernel_options.h"

namespace rocebox::nic_model {

/// What a congestion control may know of the NIC that it is made for.
struct ControlledNic {
  std::uint64_t line_rate;    ///< bits per second of the port; 0: it has none
  std::uint32_t first_qpn;    ///< number of its first queue pair
  std::uint32_t queue_pairs;  ///< how many there can be, numbered from that one on
};

/// When peers are told of congestion marks (DCQCN's notification point).
struct NotificationPoint {
  Nanos min_time_between_cnps = 4'000;  ///< of one queue pair
  std::uint8_t cnp_dscp = 48;
};

inline constexpr char kCongestionControlKind[] = "congestion_control";

/// What of RoCE went through a NIC's port so far, as packets were captured.
struct PortBytes {
  std::uint64_t received = 0, sent = 0;
};

/// New options for a running observer: checked and made ready beside it, then taken over between two of its NIC's
/// calls.
class ObserverChange {
 public:
  virtual ~ObserverChange() = default;
  /// As Change::apply().
  virtual void apply(Observer& observer, Nanos now, const PortBytes& bytes) = 0;
};

/// The options of a congestion control.
class CongestionControlOptions : public Options {
 public:
  /// Its own options say that it is to be used, though `congestion_control:` does not name it.
  virtual bool enabled() const { return false; }
  /// Why it cannot be used with a port of `line_rate`; null: it can.
  virtual const char* refuses(std::uint64_t line_rate) const = 0;
  /// With one, packets are ECN capable, and their receiver answers marks with congestion notifications.
  virtual std::optional<NotificationPoint> notification_point() const = 0;
  virtual std::unique_ptr<Observer> make(const ControlledNic& nic, Stats& stats) const = 0;
  /// Names of those of its options that an observer can take while it runs, with all that stands below them.
  virtual std::span<const std::string_view> changeable() const { return {}; }
  /// These options for `running`, which make() of such options has made. Throws ConfigError: it cannot have them.
  virtual std::unique_ptr<ObserverChange> change(const Observer& /*running*/) const { return nullptr; }
};

/// A row of component_kinds().
inline constexpr ComponentKind kCongestionControls = {
    kCongestionControlKind,
    [](const Component& row, const Options& options) -> const char* {
      if (!dynamic_cast<const CongestionControlOptions*>(&options))
        return "has options of another kind: use congestion_control()";
      return row.is_wire ? "is no wire: that is a kernel" : nullptr;
    },
    kDeviceKind};

namespace detail {
template <class C>
class ControlOptionsOf final : public CongestionControlOptions {
 public:
  void fields(Fields& fields) override { config_.fields(fields); }
  bool enabled() const override {
    if constexpr (requires { config_.enabled; }) return config_.enabled;
    return false;
  }
  const char* refuses(std::uint64_t line_rate) const override {
    if constexpr (requires { config_.refuses(line_rate); }) return config_.refuses(line_rate);
    return nullptr;
  }
  std::optional<NotificationPoint> notification_point() const override {
    if constexpr (requires { config_.notification_point(); }) return config_.notification_point();
    return {};
  }
  std::unique_ptr<Observer> make(const ControlledNic& nic, Stats& stats) const override {
    return std::make_unique<C>(config_, nic, stats);
  }
  std::span<const std::string_view> changeable() const override {
    if constexpr (requires { C::Config::kChangeable; }) return C::Config::kChangeable;
    return {};
  }
  std::unique_ptr<ObserverChange> change(const Observer& running) const override {
    if constexpr (requires { C::Config::kChangeable; }) return static_cast<const C&>(running).prepare(config_);
    return nullptr;
  }

 private:
  typename C::Config config_;
};
}  // namespace detail

/// The fewest options of a NIC in which the congestion control `self` runs.
std::string nic_with(const Component& self);

/// A congestion control C as a component; `examples` are options of a NIC that has it. C is an Observer with
///   struct Config { void fields(Fields&); };  // and perhaps std::optional<NotificationPoint> notification_point()
///   const,
///                                             // const char* refuses(std::uint64_t line_rate) const
///   C(const Config&, const ControlledNic&, Stats&);  // the counters that it makes stand among its NIC's
/// Where some options can be changed while it runs, Config has their names, an array kChangeable of std::string_view,
/// and C std::unique_ptr<ObserverChange> prepare(const Config&) const.
template <class C>
constexpr Component congestion_control(const char* name, const char* summary, const Example* examples = nullptr) {
  return {kComponentAbi,
          kCongestionControlKind,
          name,
          summary,
          [](const Registry&) -> std::unique_ptr<Options> { return std::make_unique<detail::ControlOptionsOf<C>>(); },
          examples,
          "nic",
          &nic_with};
}

}  // namespace rocebox::nic_model
