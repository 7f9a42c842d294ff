// SPDX-License-Identifier: BSD-3-Clause
// Datapath: the object that a switch is. Packets come in by process() and on timers; see README.md for their way.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/pipeline.h"
#include "switch_model/packet_generator/packet_generator.h"
#include "switch_model/state_queue.h"
#include "switch_model/switch_config.h"
#include "switch_model/traffic_manager/traffic_manager.h"

namespace rocebox::switch_model {

class Datapath final : public Kernel {
 public:
  using Config = SwitchConfig;

  Datapath(const Config& config, Stats& stats, bool strict);

  void start(Context& context) override;
  void process(Context& context, Port in, Batch& batch) override;
  void on_timer(Context& context, Timer& timer) override;
  void prefetch(const Timer& timer) const override;
  void prefetch_arrival(Port in, Packet packet) const override;
  void prefetch_turn(bool is_near) const override;
  void for_each_level(const std::function<void(const std::string&, const Level&)>& each) const override {
    traffic_.for_each_level(each);
  }
  void report(Report& report) const override;
  void stimuli(std::vector<Stimulus>& all) const override;
  /// Options that programs let be changed while they run.
  std::unique_ptr<Change> prepare(const Config& config) const;

 private:
  struct Counters {
    explicit Counters(Stats& stats);
    Counter &drop_no_port, &drop_no_members, &drop_passes, &drop_loop_full, &copy_failed, &replicated, &mirrored,
        &recirculated, &drop_no_copy, &strict_violations;
  };
  // Packets between ingress and the wire, in one call. In a batch they leave behind the packet that caused them.
  struct Leaving {
    Context& context;
    Batch* batch;  // null in a timer
    unsigned size = 0;
  };
  struct Cause {
    unsigned after;  // its packet of the batch
    bool owned;      // a copy, or a packet that was taken before; not the batch's own packet
  };
  struct Group {
    std::uint16_t number;
    std::vector<Port> members;
  };
  struct Pause {
    unsigned after;
    PauseRequest request;
  };
  // What stands between the traffic manager's decision to send and the end of the transmission.
  struct Transmission {
    PacketPtr packet;  // empty: egress has dropped it, or the port is free
    Timer timer{};     // the end of the transmission, or of a pause; its tag is the port
  };
  static constexpr unsigned kStreams = 3;  // of random numbers, for each program: the controls' and the control plane's

  // change.cc
  class NewOptions;
  FlatValues fixed_options(const Config& config) const;
  std::vector<std::string> changeable_options(const Config& config) const;

  // judged.cc
  void report_strict(Report& report) const;
  void check_accepted() const;

  // datapath.cc
  void begin(Context& context);
  std::vector<Group> groups_of(const Config& config) const;
  std::span<const Port> members_of(std::uint16_t number) const;
  void run(Context& context, Gress gress, std::span<PacketState> packets);
  void run_timer(Context& context, unsigned program, Timer& timer);
  void process_one(Context& context, Port in, Batch& batch);
  bool all_plain(unsigned size, Nanos now);
  void pass_plain(Leaving& leaving, unsigned size);
  void take_next_hop(PacketState& p, Nanos now) const;
  void manage(Leaving& leaving, PacketState& p, Cause cause);
  void replicate(Leaving& leaving, PacketState& p, Cause cause);
  void put(Leaving& leaving, PacketState& p, Cause cause);
  void put_now(Leaving& leaving, const PacketState& p, Cause cause);
  void egress(Leaving& leaving);
  void finish(Leaving& leaving);
  void leave(Leaving& leaving, PacketState& p, Cause cause);
  static void end(Leaving& leaving, PacketState& p, Cause cause, Counter& reason);

  // loops.cc
  void mirror(Context& context, PacketState& p);
  void recirculate(Leaving& leaving, PacketState& p, Cause cause);
  void wait(StateQueue& queue, PacketState& p, Nanos until);
  bool recirculated_due(Nanos now) const;
  void arm_loops(Context& context);
  void run_instant(Context& context);
  void release_recirculated(Context& context);

  // generate.cc
  void generate(Context& context);

  // transmit.cc
  void classify(Context& context, Port in, std::span<PacketState> packets);
  bool admit(Leaving& leaving, PacketState& p, Cause cause);
  bool hold(Leaving& leaving, PacketState& p, Cause cause);
  void serve(Context& context, Port port);
  void arm_port(Context& context, Port port, Nanos at);
  void repeat_pauses(Context& context);
  void collect_pauses(Context& context, unsigned after);
  void send_pauses(Leaving& leaving, unsigned before);

  // What each packet needs stands close together, and before what is large.
  const SwitchInfo info_;
  Counters count_;
  TrafficManager traffic_;
  bool strict_;
  bool shares_ = false;  // replicas have their bytes together: what writes them in egress makes sure that it may
  bool seeded_ = false;
  std::vector<std::uint8_t> pipe_of_;  // by port
  std::vector<unsigned> controls_[2];  // programs with an ingress, with an egress control
  std::vector<std::unique_ptr<Program>> programs_;
  StateQueue mirrors_, recirculated_;
  std::vector<Transmission> transmissions_;  // by port
  std::vector<Pause> pauses_;                // decided in this call, not yet sent
  std::vector<Port> due_ports_;              // to be served behind all packets of the instant
  Generated generated_;
  NextHops next_hops_;
  Timer instant_timer_, recirculation_timer_, pause_timer_, generator_timer_;
  Nanos recirculation_delay_;
  RandomStream marks_;
  std::array<std::array<RandomStream, kStreams>, kProgramsMax> random_;
  std::vector<Group> groups_;
  DynamicGroups dynamic_groups_;
  StateSlab waiting_;
  PacketGenerator generator_;
  std::array<Queueing, kBatchMax> queueing_;  // of egress_, where packets may wait
  std::array<Cause, kBatchMax> causes_;
  std::array<PacketState, kBatchMax> ingress_, egress_;
  Layout layout_;
  Violations violations_;
  Strict accesses_{violations_};  // in strict mode
  std::vector<std::string> names_;
  Profile profile_;
  std::vector<Usage> used_;  // by stage
  FlatValues fixed_options_;
  std::vector<std::string> accepted_;  // resources that need not be judged
};

}  // namespace rocebox::switch_model
