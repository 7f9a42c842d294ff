// SPDX-License-Identifier: BSD-3-Clause
// Backend: SDR at one NIC (3.2, 3.4): the workers on its DPA, which all queue pairs share, and the host program that
// sends, posts and listens. All calls are made in calls of the NIC, as those of Host are.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/sdr/backend/device/sdr_device.h"
#include "kernels/sdr/backend/options.h"
#include "nic_model/dpa/process.h"
#include "nic_model/host/host.h"

namespace rocebox::sdr {

class QueuePair;

class Backend final : public nic_model::HostProgram {
 public:
  /// Becomes a program of `host`, with `workers` threads of its DPA: as many as the queue pair with the most channels.
  /// With `senders`, so many more threads post what is sent; without, the host does. They run from the first call of
  /// the NIC on. Throws ConfigError: the DPA cannot have them. To be made before the device runs, or in its calls.
  Backend(nic_model::Host& host, std::uint32_t workers, std::uint32_t queue_pairs_max = kQueuePairsMax,
          std::uint32_t senders = 0);
  ~Backend() override;

  /// Null, with the reason in `error`: too many, or what the NIC or its DPA have no room for.
  QueuePair* create(nic_model::Host& host, const QueuePairOptions& options, std::string& error);
  /// It is gone: its packets are dropped. One with the same options is made of it again, once workers are done with it.
  void destroy(nic_model::Host& host, QueuePair& qp);
  /// Goes into the first PSNs that are drawn of the device's seed: a live process that starts again with the same seed
  /// must draw others than the one before.
  void set_salt(std::uint64_t salt) { salt_ = salt; }
  /// Whether workers are not yet done with one that had these options: until then create() may have no room for
  /// another.
  bool is_draining(const QueuePairOptions& options) const;

  /// Memory that messages are sent from and received into; the caller keeps it until remove(). The key; 0: too many.
  std::uint32_t add_memory(void* address, std::uint64_t bytes, bool remote_write);
  bool remove_memory(std::uint32_t key) { return host_.memory().remove(key); }
  /// Whether messages can be sent from all of these bytes, or received into them.
  bool has_memory(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, bool remote_write) const;

  /// A timer whose owner is called; its tag is replaced. It outlives the backend, or is cancelled.
  void arm(nic_model::Host& host, Timer& timer, Nanos at, std::uint32_t owner);
  std::uint32_t add_timer_owner(std::function<void(nic_model::Host&)> on_timer);

  /// What is to be done in a call of the NIC, which is asked for.
  void call(std::function<void(nic_model::Host&)> what);

  nic_model::Host& host() const { return host_; }
  std::uint32_t program() const { return program_; }
  Progress progress() const { return host_.progress(program_, process_); }
  std::uint32_t domain() const { return process_->domain(); }
  nic_model::dpa::Process& process() const { return *process_; }
  std::uint32_t workers() const { return static_cast<std::uint32_t>(workers_.size()); }
  std::uint32_t senders() const { return static_cast<std::uint32_t>(senders_.size()); }
  /// What they have done, all together.
  struct Sent {
    std::uint64_t activations = 0, batches = 0, packets = 0;
  };
  Sent sent() const;
  /// Completions that were of no packet of a queue pair of ours.
  std::uint64_t errors() const;

  void on_start(nic_model::Host& host) override;
  void on_completion(nic_model::Host& host, nic_model::CompletionQueue& cq) override;
  void on_timer(nic_model::Host& host, Timer& timer) override;

 private:
  friend class QueuePair;
  struct Worker {
    nic_model::CompletionQueue* cq = nullptr;
    nic_model::dpa::Thread* thread = nullptr;
    sdr_worker* shared = nullptr;
  };
  // A transmit worker; `posted`: orders that it was given.
  struct Sender {
    nic_model::CompletionQueue* cq = nullptr;
    nic_model::dpa::Thread* thread = nullptr;
    sdr_sender* shared = nullptr;
    sdr_order* orders = nullptr;
    std::uint32_t posted = 0;
    std::uint32_t done() const { return __atomic_load_n(&shared->done, __ATOMIC_ACQUIRE); }
  };
  // False: the DPA has no room.
  bool add_worker(std::uint64_t routes);
  bool add_sender();
  // For QueuePair. False: the worker of that channel has no room now. Who starves is pumped at each completion, and by
  // a timer, for no completion comes of orders that were taken back.
  bool order(nic_model::Host& host, QueuePair& by, std::uint32_t channel, const sdr_order& order);
  void take_back_orders(QueuePair& of);
  // Whether workers have nothing before them of a queue pair that was destroyed.
  bool is_at_rest(const QueuePair& qp) const;
  void pump_starved(nic_model::Host& host);
  template <class T>
  T* device(std::uint64_t address, std::size_t count = 1) const {
    return reinterpret_cast<T*>(process_->at(address, sizeof(T) * count));
  }
  sdr_route& route(std::uint32_t qpn) const { return routes_[qpn - first_qpn_]; }
  void listen(nic_model::CompletionQueue& cq, QueuePair& qp);

  nic_model::Host& host_;
  nic_model::dpa::Process* process_ = nullptr;
  std::uint32_t program_ = 0, first_qpn_ = 0, queue_pairs_max_;
  sdr_route* routes_ = nullptr;  // in the device's memory, by queue pair of the NIC
  std::vector<Worker> workers_;
  std::vector<Sender> senders_;
  std::vector<QueuePair*> starved_, pumped_;  // pumped_: empty but while these are pumped
  Timer starved_timer_;
  std::uint32_t starved_owner_ = 0;
  std::vector<std::unique_ptr<QueuePair>> queue_pairs_, idle_;
  std::vector<QueuePair*> by_cq_;  // by number of the queue
  std::vector<std::function<void(nic_model::Host&)>> tasks_, timer_owners_;
  std::uint64_t salt_ = 0;
  bool workers_run_ = false;
};

}  // namespace rocebox::sdr
