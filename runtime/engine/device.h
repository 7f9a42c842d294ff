// SPDX-License-Identifier: BSD-3-Clause
// Device: one instance with its own state and numbered ports, as a drive sees it.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/pipeline.h"

namespace rocebox {

class DeviceBooks;
class DelayWay;
class HostSide;
class LinePath;
class WirePath;

/// What a drive steps. Two instances share nothing, so hundreds live in one process. What else there is to a device
/// stands apart: what is reported of it, what looks at its packets, its short cut, its host.
class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;
  virtual const std::vector<std::string>& ports() const = 0;

  /// One instant: see Pipeline::step. The device fills the packets' metadata (arrival, input, identity, parse).
  virtual void step(Nanos now, std::span<const Arrivals> arrivals) = 0;
  virtual Nanos next_deadline() const = 0;
  /// Brings what step() will need for the timer that is due next nearer. Changes nothing.
  virtual void prefetch() const {}
  /// The same for a packet that is about to come in by `in`.
  virtual void prefetch_arrival(Port /*in*/, Packet /*packet*/) const {}
  /// The same for a turn of many packets: called twice, see Kernel::prefetch_turn.
  virtual void prefetch_turn(bool /*is_near*/) const {}
  /// Memory of the device that each step() reads and writes, for its life; asked for once.
  virtual std::span<const std::byte> hot() const { return {}; }
  virtual void set_sink(Sink sink) = 0;
  virtual void set_batch_max(unsigned packets) = 0;
  /// Who takes what leaves by port `out` only reads its bytes: they may be other packets', too.
  virtual void allow_shared(Port out) = 0;
  /// Packets get their identity from `identities`, which devices that hand packets to each other share, and which
  /// outlives the device. Without it a device has one of its own.
  virtual void set_identities(PacketIdentities& identities) = 0;

  virtual void set_trace(TraceSink* trace) = 0;
  virtual void set_probe(Probe* probe) = 0;
  /// Kernel `number`, in the order of DeviceBooks::report; for what changes its options.
  virtual Kernel& kernel(unsigned number) = 0;

  virtual const DeviceBooks& books() const = 0;
  /// Null when packets always have to go through step().
  virtual WirePath* wire_path() { return nullptr; }
  /// Null when packets always have to go through step().
  virtual LinePath* line_path() { return nullptr; }
  /// Null when no host is behind it.
  virtual HostSide* host_side() { return nullptr; }
  /// step() with one packet, which is parsed and has its identity; next_deadline().
  virtual Nanos step_one(Nanos now, Port in, Packet packet) {
    const Arrivals arrivals{in, {&packet, 1}};
    step(now, {&arrivals, 1});
    return next_deadline();
  }
  /// `sink` takes over what is said to leave later; none: nothing is (Context::emit_at).
  virtual void set_ahead_sink(AheadSink /*sink*/) {}
  /// Counts by name what has happened before `before` and was only noted, as short cuts do.
  virtual void settle(Nanos /*before*/) {}
};

/// How much of a device is reported.
enum class Detail : std::uint8_t { kCounters, kAll };

/// One number that a device counts, and what counts it: the port or kernel, or the device itself when both are empty.
struct CounterView {
  std::string_view port, kernel, kernel_type;
  std::string_view name, sentence;
  CounterKind kind;
  std::uint64_t value;
  const Counter* counter;      ///< what drops name as their reason; null: it is computed, or no count of events
  const CounterValue* number;  ///< what can be read again; null: it is computed
};

/// What a device counts and reports.
class DeviceBooks {
 public:
  /// May be asked for on any thread.
  virtual Conservation conservation() const = 0;
  /// What the report says of this device: ports, kernels, their counters; and what the kernels themselves have to say
  /// when `detail` is kAll. Counters may be read on any thread while packets flow, kernels not.
  virtual void report(Report& report, Detail detail = Detail::kAll) const = 0;
  /// Every number of report(), with its sentence. On any thread while packets flow.
  virtual void for_each_counter(const std::function<void(const CounterView&)>& each) const = 0;
  /// Kernel::for_each_level of each kernel, with the kernel's name.
  using OnLevel = std::function<void(std::string_view kernel, const std::string& name, const Level& level)>;
  virtual void for_each_level(const OnLevel& each) const = 0;
  /// The name of a counter of this device or of one of its kernels; empty when it is another's.
  virtual std::string_view counter_name(const Counter* counter) const = 0;

 protected:
  ~DeviceBooks() = default;
};

/// The short cut of a device: where a wire must cost no more than a wire, a drive passes packets on by itself and tells
/// it by count(), instead of Device::step().
class WirePath {
 public:
  /// The port by which packets of port `in` leave when nothing looks at them on their way now, or -1.
  virtual int out(Port in) const = 0;
  virtual void count(Port in, Port out, std::uint64_t packets, std::uint64_t bytes) = 0;

 protected:
  ~WirePath() = default;
};

/// The short cut of a device with two ports that only delays: who joins devices puts packets on its ways and takes them
/// off by itself, as DelayWay says. What becomes of them is the same. Device::settle() counts them.
class LinePath {
 public:
  /// Of what comes in by `in`, for the life of the device. It leaves by the other port.
  virtual DelayWay& way(Port in) = 0;
  /// Before a packet is put on a way that is watched, or one that is not parsed, has no identity or is not RoCEv2.
  virtual void comes(Port in, Packet packet, Nanos now) = 0;
  /// Behind each packet that is taken off a way that is watched.
  virtual void goes(Packet packet) = 0;

 protected:
  ~LinePath() = default;
};

}  // namespace rocebox
