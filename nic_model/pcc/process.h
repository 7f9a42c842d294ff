// SPDX-License-Identifier: BSD-3-Clause
// Process: a program of programmable congestion control that runs: its code and data, its flows' contexts, its tables.
// A reaction point is called with events and says rates, a notification point with probes and says what their answers
// carry; both with messages of the host. What goes wrong in it stops it, and is named.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nic_model/dpa/calls.h"
#include "nic_model/dpa/program.h"
#include "nic_model/pcc/include/doca_pcc_dev_data_structures.h"
#include "nic_model/pcc/mailbox.h"
#include "nic_model/pcc/notification.h"
#include "nic_model/pcc/tables.h"
#include "nic_model/rate/dcqcn.h"
#include "nic_model/rate/observer.h"
#include "runtime/kernel/report.h"
#include "runtime/packet/packet.h"

namespace rocebox::nic_model::pcc {

/// What a program may ask about while it handles something.
struct Moment {
  Nanos now = 0;
  std::uint64_t bytes_received = 0, bytes_sent = 0;  ///< of the port
};

/// Whose part of congestion control a program plays.
enum class Role : std::uint8_t { kReactionPoint, kNotificationPoint };

struct ProcessOptions {
  std::uint32_t flows = 0;      ///< that it has contexts for, from 0 on
  std::uint64_t line_rate = 0;  ///< bits per second
  std::uint32_t slot = 0;       ///< whose algorithm flows have
  std::uint32_t threads = 1;
  Nanos watchdog = 0;  ///< CPU time that a call may take
  Role role = Role::kReactionPoint;
  std::int64_t budget = dpa::kBlocksMax;  ///< blocks of code that a call may run through
};

class Process {
 public:
  /// `program` is what stands in the file `path`. Throws ConfigError: it cannot be loaded, or goes wrong in its
  /// doca_pcc_dev_user_init.
  Process(const std::string& path, std::string_view program, const ProcessOptions& options);
  /// Throws ConfigError: that is no such program.
  static void check(const std::string& path, std::string_view program);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const { return program_.name(); }
  /// Bits of the kinds of events that it does not want.
  std::uint32_t disabled() const { return disabled_; }

  /// The flow has a new context from now on.
  void new_flow(std::uint32_t flow, Nanos now);
  /// One event of the flow. False: the program has been stopped, now or before, and `results` are nothing.
  bool handle(std::uint32_t flow, doca_pcc_dev_event_t& event, doca_pcc_dev_results_t& results, const Moment& moment);
  /// The source port that the program has given the flow in handle(); 0: none.
  std::uint16_t new_source_port() const { return new_source_port_; }
  /// That of the flow's last packet, for the program.
  void set_source_port(std::uint16_t port) { source_port_ = port; }

  /// A notification point's: a probe has come for the flow. Empty: it is not to be answered, or the program has been
  /// stopped.
  std::optional<NotificationAnswer> answer(std::uint32_t flow, const RttRequest& request, const Moment& moment);
  /// A message of the host. False: the program does not take it, or has been stopped.
  bool mail(const MailBytes& message, const Moment& moment);
  /// Throws ConfigError: it takes no messages.
  void check_mailbox() const;

  /// The port has come up: tells the program, if it wants to know.
  void port_changed(const Moment& moment);
  /// Parameters of port 0. Why not; empty: the program has them.
  std::string set_parameter(std::uint32_t slot, std::uint32_t id, std::uint32_t value, const Moment& moment);

  /// What all parameters that can be changed are when `given` are other than the program has them. Throws ConfigError:
  /// there are no such, or they cannot have that value.
  std::vector<ParameterValue> values_of(std::span<const ParameterValue> given) const;
  /// As set_parameter(), and nothing where it is so already.
  std::string give(const ParameterValue& what, const Moment& moment);

  bool stopped() const { return !error_.empty(); }
  /// Why it was stopped, and where; empty: it was not.
  const std::string& error() const { return error_; }
  const Tables& tables() const { return tables_; }
  void report(Report& report) const;

  // For the program.

  /// That whose code runs on this thread; null: none.
  static Process* current();
  Tables& tables() { return tables_; }
  /// In its doca_pcc_dev_user_declare_memory.
  bool is_declaring() const { return is_declaring_; }
  const Moment& moment() const { return *moment_; }
  std::uint64_t line_rate() const { return options_.line_rate; }
  std::uint32_t thread_rank() const { return flow_ % options_.threads; }
  std::uint16_t source_port() const { return source_port_; }
  /// False: no event is being handled.
  bool give_source_port(std::uint16_t port);
  /// The internal algorithm handles the event that is being handled.
  void internal(doca_pcc_dev_results_t& results);
  void say(std::string line);
  /// Of the answer to the probe that is being handled.
  void set_response_dscp(std::uint32_t dscp);
  void configure_counters(const std::uint32_t* ids, std::uint32_t count, std::uint32_t* values);
  void sample_counters() const;
  /// Ends the call, and the program.
  [[noreturn]] void fail(const char* why);

 private:
  enum class Call : std::uint8_t { kInit, kEvent, kPort, kParameter, kProbe, kMail };
  // A context between two guards: a line of the cache.
  struct alignas(64) Flow {
    std::uint64_t before = 0;
    doca_pcc_dev_algo_ctxt_t context{};
    std::uint64_t after = 0;
  };
  using DeclareMemory = void (*)();
  using Init = void (*)(std::uint32_t*);
  using Algo = void (*)(doca_pcc_dev_algo_ctxt_t*, doca_pcc_dev_event_t*, const doca_pcc_dev_attr_t*,
                        doca_pcc_dev_results_t*);
  using SetParameters = int (*)(std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, const std::uint32_t*,
                                std::uint32_t*);
  using PortChanged = void (*)(std::uint32_t);
  using PacketHandler = int (*)(doca_pcc_np_dev_request_packet*, doca_pcc_np_dev_response_packet*);

  bool run(Call call, const Moment& moment);
  void call();

  ProcessOptions options_;
  dpa::Program program_;
  dpa::Calls calls_;
  Tables tables_;
  DeclareMemory declare_memory_;
  Init init_;
  Algo algo_;
  SetParameters set_parameters_;
  PortChanged port_changed_;
  PacketHandler packet_handler_;
  Mailbox mailbox_;
  Notification notification_;
  std::vector<Flow> flows_;
  std::vector<DcqcnRate> internal_rates_;
  DcqcnConfig internal_config_;
  bool is_internal_ = false;  // flows are the internal algorithm's, by the program's own word
  doca_pcc_dev_attr_t attributes_{};

  // Of the call that is made.
  Call call_ = Call::kInit;
  bool is_handling_ = false, is_declaring_ = false;
  const Moment* moment_ = nullptr;
  std::uint32_t flow_ = 0;
  doca_pcc_dev_event_t* event_ = nullptr;
  doca_pcc_dev_results_t* results_ = nullptr;
  std::uint32_t slot_ = 0, id_ = 0, value_ = 0;
  bool is_taken_ = false;
  std::uint16_t source_port_ = 0, new_source_port_ = 0;

  std::uint32_t disabled_ = 0;
  std::vector<std::uint32_t> counter_ids_;
  std::uint32_t* counter_values_ = nullptr;
  const char* failure_ = nullptr;
  std::string error_;
  std::vector<std::string> lines_;
  std::uint64_t lines_in_all_ = 0;
};

}  // namespace rocebox::nic_model::pcc
