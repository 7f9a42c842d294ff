// SPDX-License-Identifier: BSD-3-Clause
// All that a kernel's author needs. No DPDK call, no clock, no global, no thread: a kernel is called with
// packets and the time, gives each packet a verdict, and says when it wants to be woken.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "runtime/component/fields.h"
#include "runtime/kernel/counter.h"
#include "runtime/kernel/report.h"
#include "runtime/kernel/splitmix64.h"
#include "runtime/kernel/timer.h"
#include "runtime/packet/batch.h"
#include "runtime/packet/packet.h"

namespace rocebox {

class Pipeline;
struct Stimulus;

/// What makes a configuration unusable; thrown while loading only, and the only exception of the system.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The whole outside world of a kernel, valid during one call.
class Context {
 public:
  /// The time; one value for the whole call.
  Nanos now() const { return now_; }

  /// The next number of this kernel's own stream, seeded by (run seed, device, kernel). Draw in packet order.
  std::uint64_t random() { return splitmix64::next(*random_state_); }

  /// A new packet of `bytes` uninitialised bytes with fresh metadata, to be given to Batch::follow or emit.
  /// Empty when the pool is dry or `bytes` exceeds kPacketBytesMax: count it and carry on.
  PacketPtr allocate(std::uint32_t bytes);

  /// A copy of a packet, bytes and metadata. Empty when the pool is dry.
  PacketPtr copy(Packet packet);

  /// The same without copying the bytes: both packets have them, and none may write them before own(). `packet` and
  /// what is made must be the kernel's (Batch::take), and leave by Batch::follow or emit. Empty when the pool is dry.
  PacketPtr share(Packet packet);
  /// Puts a copy in the place of a packet of the kernel that shares its bytes: then they may be written. False, and
  /// nothing is changed, when the pool is dry.
  bool own(Packet& packet);

  /// From on_timer only: `packet` leaves by `out`, in emitting order. (In process() a packet follows another,
  /// Batch::follow: "behind the whole batch" would depend on how the input was cut into batches.)
  void emit(PacketPtr packet, Port out);

  /// Lets go of a packet that the kernel holds; `reason` is counted by one and named in traces.
  void drop(PacketPtr packet, Counter& reason);

  /// Tells the packet trace what was done to a packet that goes on: `what` is a fixed text of a word or two, such as
  /// "trim". While no trace follows the packet this is one test.
  void note(Packet packet, std::string_view what);

  /// on_timer(timer) will be called at `at`, or in this instant when `at` is not later, and no more when it was armed
  /// for before. Of equal times those of a lower `part` come first (a kernel that runs parts inside itself numbers them
  /// from 1), then who was armed first.
  void arm(Timer& timer, Nanos at, std::uint8_t part = 0);
  /// The same where the timer is not armed, or for later; else nothing.
  void arm_by(Timer& timer, Nanos at, std::uint8_t part = 0) {
    if (at < timer.at()) arm(timer, at, part);
  }
  void cancel(Timer& timer);
  /// From start() only: room for so many armed timers of this kernel. More are no mistake, but then arming the most
  /// that there ever were may allocate.
  void reserve_timers(std::size_t timers);

 private:
  friend class Pipeline;
  Context(Pipeline& pipeline, unsigned stage, Nanos now, std::uint64_t* random_state, bool in_timer)
      : pipeline_(pipeline), random_state_(random_state), now_(now), stage_(stage), in_timer_(in_timer) {}
  Pipeline& pipeline_;
  std::uint64_t* random_state_;
  Nanos now_;
  unsigned stage_;
  bool in_timer_;
};

/// A pluggable packet function: one instance per place in a pipeline and shard.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Called once, before everything else, at time 0, which may be long before the first packet's: of the context only
  /// arm() may be used. For kernels that do something although nothing comes.
  virtual void start(Context& /*context*/) {}
  /// Called with 1 to kBatchMax packets that came in by `in` at context.now(). Never throws, never blocks, never
  /// allocates; cutting the same packets into other batches must change nothing.
  virtual void process(Context& context, Port in, Batch& batch) = 0;
  virtual void on_timer(Context& /*context*/, Timer& /*timer*/) {}
  /// Adds to the report what counters do not say. Called between packets or after the run, not in the datapath.
  virtual void report(Report& /*report*/) const {}
  /// Adds headers of packets that its options make it act upon; `rocebox check` sends packets of every kind under each.
  virtual void stimuli(std::vector<Stimulus>& /*all*/) const {}
};

/// New options for a running kernel: checked and made ready beside it, then taken over in no time.
class Change {
 public:
  virtual ~Change() = default;
  /// Called between two batches on the kernel's own thread, at a time not before its last call. Never throws, blocks
  /// or allocates. What it replaces it keeps, so that memory is freed by who destroys the change.
  virtual void apply(Kernel& kernel, Nanos now) = 0;
};

/// How a kernel is wired.
enum class Shape : std::uint8_t {
  kTwoSided,  ///< ports 0 (left) and 1 (right), each in and out; *pass* goes to the other side
  kOneWay,    ///< numbered inputs and outputs of their own; *pass* goes to output 0
};

/// A ready configuration of a kernel: shown by `rocebox kernels NAME`, and run by the tests of the contracts.
struct Example {
  const char* title;  ///< null ends the array
  const char* yaml;   ///< the options, as under `kernels: {NAME: ...}`
};

/// What a kernel runs inside itself, named by one of its options: a program of a switch.
struct KernelPart {
  const char* name;         ///< null ends the array; the options of the part are the kernel's group of this name
  const char* kind;         ///< "program"
  const char* summary;      ///< one line
  const char* yaml;         ///< the fewest options with which the kernel runs this part and no other
  const Example* examples;  ///< options of a kernel that runs it, ended by a null title; may be null
};

/// A row of the registry, and what a plugin exports.
struct KernelType {
  std::uint32_t abi;    ///< refused, with both numbers named, when it is not kKernelAbi
  const char* name;     ///< null ends a plugin's table
  const char* summary;  ///< one line
  Shape shape;
  Port inputs, outputs;     ///< 2 and 2 when two-sided
  const Example* examples;  ///< ended by a null title; may be null
  /// Reads the options from `config` and makes an instance; null when `config` is only to be checked (stats is
  /// null then). May throw ConfigError for what the fields cannot say.
  std::unique_ptr<Kernel> (*make)(Fields& config, Stats* stats);
  /// Reads new options for an instance that runs meanwhile: only what no packet changes may be looked at. Throws
  /// ConfigError that names what cannot be changed so. Null: nothing can.
  std::unique_ptr<Change> (*change)(Fields& config, const Kernel& kernel);
  /// The boolean option with which an instance holds itself to what its hardware can do, and reports `layout`, what it
  /// takes of it, and the table `violations`, rows of `what` and `times`. Null: it models no hardware.
  const char* strict_option = nullptr;
  const KernelPart* parts = nullptr;  ///< ended by a null name; null: the kernel has none
};

/// Raised whenever a type that crosses the plugin boundary changes.
inline constexpr std::uint32_t kKernelAbi = 8;

namespace detail {
template <class K>
std::unique_ptr<Kernel> make_kernel(Fields& fields, Stats* stats) {
  typename K::Config config;
  config.fields(fields);
  if (!stats) return nullptr;
  return std::make_unique<K>(config, *stats);
}

template <class K>
concept Changeable = requires(const K& kernel, const typename K::Config& config) {
  { kernel.prepare(config) } -> std::same_as<std::unique_ptr<Change>>;
};
template <class K>
std::unique_ptr<Change> change_kernel(Fields& fields, const Kernel& kernel) {
  typename K::Config config;
  config.fields(fields);
  return static_cast<const K&>(kernel).prepare(config);
}
template <class K>
constexpr auto change_of() -> decltype(KernelType::change) {
  if constexpr (Changeable<K>) return &change_kernel<K>;
  return nullptr;
}
}  // namespace detail

/// A two-sided inline kernel: `K::Config` with `fields(Fields&)`, and `K(const Config&, Stats&)`. Where it has
/// `std::unique_ptr<Change> prepare(const Config&) const`, its options can be changed while it runs.
template <class K>
constexpr KernelType two_sided_kernel(const char* name, const char* summary, const Example* examples = nullptr) {
  return {kKernelAbi, name, summary, Shape::kTwoSided, 2, 2, examples, &detail::make_kernel<K>, detail::change_of<K>()};
}

/// A kernel with its own numbered inputs and outputs.
template <class K>
constexpr KernelType one_way_kernel(const char* name, const char* summary, Port inputs, Port outputs,
                                    const Example* examples = nullptr) {
  return {kKernelAbi,
          name,
          summary,
          Shape::kOneWay,
          inputs,
          outputs,
          examples,
          &detail::make_kernel<K>,
          detail::change_of<K>()};
}

}  // namespace rocebox

/// What a plugin .so exports: its kernel types, ended by a row with a null name.
extern "C" const rocebox::KernelType* rocebox_kernel_types();
