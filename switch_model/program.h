// SPDX-License-Identifier: BSD-3-Clause
// Program: what runs in a switch. A program is a struct with controls that are templates over Access; ProgramOf makes
// the object of it that a switch calls, once per batch.
#pragma once
#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/kernel/kernel_options.h"
#include "switch_model/access.h"
#include "switch_model/dynamic_groups.h"
#include "switch_model/layout.h"
#include "switch_model/mirror_session.h"
#include "switch_model/next_hops.h"
#include "switch_model/pass.h"

namespace rocebox::switch_model {

/// Ports that lead to one destination, among which packets are spread.
struct EqualPorts {
  std::string to;  ///< as it is written: `02:00:00:00:00:01`, `10.0.0.0/24`
  std::vector<std::string> ports;
};

/// What a program may know of the switch it stands in.
struct SwitchInfo {
  std::vector<std::string> ports;  ///< names, by number
  unsigned pipes = 1;
  std::vector<MirrorSession> mirror_sessions{};
  std::vector<std::int64_t> multicast_groups{};  ///< their numbers
  std::vector<EqualPorts> equal_ports{};         ///< while options are read: what programs read before have told
  bool routes = false;                           ///< the same: packets get other MAC addresses
  bool classifies = false;                       ///< the same: packets get classes

  unsigned port_count() const { return static_cast<unsigned>(ports.size()); }
  /// The pipe of a port: ports are dealt out in equal blocks.
  std::uint8_t pipe_of(Port port) const { return static_cast<std::uint8_t>(port * pipes / port_count()); }
  /// The number of a port's name; kNoPort when there is none.
  Port find(std::string_view name) const {
    for (std::size_t i = 0; i < ports.size(); i++)
      if (ports[i] == name) return static_cast<Port>(i);
    return kNoPort;
  }
  /// The session of that number; null when there is none.
  const MirrorSession* mirror_session(std::int64_t number) const {
    for (const MirrorSession& one : mirror_sessions)
      if (one.session == number) return &one;
    return nullptr;
  }
  /// Reads a port's name that must be one of the switch's; refuses others with the nearest.
  void read_port(Fields& fields, std::string_view field, std::string& name, std::string_view doc) const;
  /// The same for a list of them, which must not name one twice.
  void read_ports(Fields& fields, std::string_view field, std::vector<std::string>& names, std::string_view doc) const;

  /// Refuses a name that was read and is no port's; an empty one passes.
  void check_port(Fields& fields, std::string_view field, const std::string& name) const;
};

/// What a program is built with. `layout` and `stats` are valid during the constructor; what they hand out, `info`,
/// `next_hops` and `groups` as long as the program.
struct Build {
  Layout& layout;
  Stats& stats;
  const SwitchInfo& info;
  NextHops& next_hops;
  DynamicGroups& groups;
};

/// What a switch calls. Once per batch and control; never throws, blocks or allocates.
class Program {
 public:
  virtual ~Program() = default;
  virtual void ingress(Pass& pass) = 0;
  virtual void egress(Pass& pass) = 0;
  virtual bool has_ingress() const = 0;
  virtual bool has_egress() const = 0;
  /// Its egress control writes bytes of packets behind Pass::own only.
  virtual bool owns_what_it_writes() const = 0;
  /// Brings what ingress() will read for a packet that comes soon, and is parsed, nearer. Changes nothing.
  virtual void prefetch(Packet packet) const = 0;
  /// The control plane: learning, ageing. `pass` has no packets.
  virtual void on_timer(Pass& pass, Timer& timer) = 0;
  /// Adds to the report what counters do not say.
  virtual void report(Report& report) const = 0;
  /// Adds headers that the program would act upon to those of the programs before it; see Kernel::stimuli.
  virtual void stimuli(std::vector<Stimulus>& all) const = 0;
};

/// New options for a running program, taken over between two batches.
class ProgramChange {
 public:
  virtual ~ProgramChange() = default;
  /// Never throws, blocks or allocates.
  virtual void apply(Program& program) = 0;
};

inline constexpr char kProgramKind[] = "program";

/// The options of a program.
class ProgramOptions : public Options {
 public:
  /// To describe them without a switch: as in one of four ports.
  void fields(Fields& fields) final;
  /// In the switch that `info` tells of.
  virtual void fields(Fields& fields, const SwitchInfo& info) = 0;
  /// Before the fields are filled, in a switch that a topology has placed: what is not written is as `placement` says.
  virtual void place(const Placement& /*placement*/, const SwitchInfo& /*info*/) {}
  /// Adds what the options of other programs are held against, once these have been read.
  virtual void tell(SwitchInfo& info) const = 0;
  /// Makes the program; strict when `strict` is not null: then it judges the accesses of all programs of the device.
  /// Throws ConfigError.
  virtual std::unique_ptr<Program> make(const Build& build, Strict* strict) const = 0;
  /// Names of the options that can be changed while the program runs.
  virtual std::span<const std::string_view> changeable() const = 0;
  /// These options, of which only changeable ones differ, for a program that was made of others. Throws ConfigError
  /// when that cannot be; null when nothing can.
  virtual std::unique_ptr<ProgramChange> prepare(const Program& running) const = 0;
  /// Bytes that the program takes of EAL's memory, those of a change included.
  virtual std::uint64_t eal_bytes() const = 0;
};

/// A row of component_kinds().
inline constexpr ComponentKind kPrograms = {kProgramKind,
                                            [](const Component& row, const Options& options) -> const char* {
                                              if (!dynamic_cast<const ProgramOptions*>(&options))
                                                return "has options of another kind: use program()";
                                              return row.is_wire ? "is no wire: that is a kernel" : nullptr;
                                            },
                                            kDeviceKind};

/// Makes a Program of P, which has
///   struct Config { void fields(Fields&, const SwitchInfo&); };  // and perhaps void tell(SwitchInfo&) const,
///                                                                // std::uint64_t eal_bytes() const,
///                                                                // void place(const Placement&, const SwitchInfo&)
///   P(const Config&, const Build&);
/// and some of
///   template <class Access> void ingress(Access&, Pass&);
///   template <class Access> void egress(Access&, Pass&);
///   void on_timer(Pass&, Timer&);
///   void prefetch(Packet) const;  // what ingress() will read for that packet, which comes soon; changes nothing
///   void report(Report&) const;
///   void stimuli(std::vector<Stimulus>&) const;
///   static constexpr bool kOwnsWhatItWrites = true;  // see Pass::own; else replicas of multicast groups are copies
///   static constexpr std::array<std::string_view, N> kChangeable;
/// which names the options that can be changed while it runs (with all that is below them), and then needs either
///   void check_change(const Config&) const;  // throws ConfigError
///   void change(const Config&);              // does not allocate
/// or, when tables are to be built beside those that packets pass meanwhile,
///   using Prepared = ...;
///   Prepared prepare(const Config&) const;   // throws ConfigError; looks at nothing that packets or timers change
///   void change(Prepared&);                  // does not allocate; leaves there what it replaces, to be freed later
template <class P>
class ProgramOf final : public Program {
 public:
  ProgramOf(const typename P::Config& config, const Build& build, Strict* strict)
      : program_(config, build), strict_(strict) {}
  void ingress(Pass& pass) override {
    if constexpr (kIngress) {
      if (strict_) return program_.ingress(*strict_, pass);
      Fast fast;
      program_.ingress(fast, pass);
    }
  }
  void egress(Pass& pass) override {
    if constexpr (kEgress) {
      if (strict_) return program_.egress(*strict_, pass);
      Fast fast;
      program_.egress(fast, pass);
    }
  }
  bool has_ingress() const override { return kIngress; }
  bool has_egress() const override { return kEgress; }
  bool owns_what_it_writes() const override {
    if constexpr (requires { P::kOwnsWhatItWrites; }) return P::kOwnsWhatItWrites;
    return false;
  }
  void prefetch(Packet packet) const override {
    if constexpr (requires(const P& p) { p.prefetch(packet); }) program_.prefetch(packet);
  }
  void on_timer(Pass& pass, Timer& timer) override {
    if constexpr (requires(P & p) { p.on_timer(pass, timer); }) program_.on_timer(pass, timer);
  }
  void report(Report& report) const override {
    if constexpr (requires(const P& p) { p.report(report); }) program_.report(report);
  }
  void stimuli(std::vector<Stimulus>& all) const override {
    if constexpr (requires(const P& p) { p.stimuli(all); }) program_.stimuli(all);
  }
  P& program() { return program_; }
  const P& program() const { return program_; }

 private:
  static constexpr bool kIngress = requires(P & p, Fast& fast, Pass& pass) { p.ingress(fast, pass); };
  static constexpr bool kEgress = requires(P & p, Fast& fast, Pass& pass) { p.egress(fast, pass); };
  P program_;
  Strict* const strict_;
};

namespace detail {
template <class P>
class OptionsOf final : public ProgramOptions {
 public:
  void fields(Fields& fields, const SwitchInfo& info) override { config_.fields(fields, info); }
  void place(const Placement& placement, const SwitchInfo& info) override {
    if constexpr (requires { config_.place(placement, info); }) config_.place(placement, info);
  }
  void tell(SwitchInfo& info) const override {
    if constexpr (requires { config_.tell(info); }) config_.tell(info);
  }
  std::unique_ptr<Program> make(const Build& build, Strict* strict) const override {
    return std::make_unique<ProgramOf<P>>(config_, build, strict);
  }
  std::uint64_t eal_bytes() const override {
    if constexpr (requires { config_.eal_bytes(); }) return config_.eal_bytes();
    return 0;
  }
  std::span<const std::string_view> changeable() const override {
    if constexpr (kChanges) return P::kChangeable;
    return {};
  }
  std::unique_ptr<ProgramChange> prepare(const Program& running) const override {
    if constexpr (kChanges) {
      const P& program = static_cast<const ProgramOf<P>&>(running).program();
      if constexpr (kPrepares) {
        return std::make_unique<ChangeOf<typename P::Prepared>>(program.prepare(config_));
      } else {
        program.check_change(config_);
        return std::make_unique<ChangeOf<typename P::Config>>(config_);
      }
    }
    return nullptr;
  }

 private:
  static constexpr bool kChanges = requires { P::kChangeable; };
  static constexpr bool kPrepares = requires { typename P::Prepared; };
  template <class NewOptions>
  struct ChangeOf final : ProgramChange {
    explicit ChangeOf(NewOptions options) : options_(std::move(options)) {}
    void apply(Program& program) override { static_cast<ProgramOf<P>&>(program).program().change(options_); }
    NewOptions options_;
  };
  typename P::Config config_;
};
}  // namespace detail

/// The fewest options of a switch that runs the program `self` and no other; `needs` are options of the program, as
/// YAML, without which it does not run.
std::string alone(const Component& self, const char* needs);

/// A program as a component. `examples` are options of a switch that runs it. kNeeds: see alone(); null: its defaults
/// do.
template <class P, const char* kNeeds = nullptr>
constexpr Component program(const char* name, const char* summary, const Example* examples = nullptr) {
  return {kComponentAbi,
          kProgramKind,
          name,
          summary,
          [](const Registry&) -> std::unique_ptr<Options> { return std::make_unique<detail::OptionsOf<P>>(); },
          examples,
          "switch",
          [](const Component& self) { return alone(self, kNeeds); }};
}

}  // namespace rocebox::switch_model
