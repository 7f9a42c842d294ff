// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "nic_model/host/workloads/mesh.h"
#include "runtime/kernel/carried.h"

namespace rocebox::nic_model {

/// A workload whose transfers a mesh carries. Subclasses say what is sent at first, and what when something has come.
class MeshWorkload : public Workload, public Carrier, public Placer {
 public:
  MeshWorkload(std::span<const WorkloadHost> hosts, const MeshOptions& options);
  bool finished() const override { return finished_; }
  Progress progress() const override { return mesh_.progress(); }
  std::span<const FlowRecord> flows() const override { return mesh_.flows(); }
  void explain_waiting(Report& report, unsigned lines) const override { mesh_.explain_waiting(report, lines); }
  void report(Report& report) const override;
  Share share_carried() const override { return {mesh_.bytes_placed(), bytes_in_all()}; }
  double bytes_placed() const override { return mesh_.bytes_placed(); }
  std::uint64_t bytes_placed(std::size_t number) const override { return mesh_.bytes_placed(number); }

 protected:
  /// Transfer `number` is with its receiver.
  virtual void on_received(std::size_t number, Nanos now) = 0;
  /// Whether no transfer will begin any more.
  virtual bool all_begun() const = 0;
  /// Bytes of all transfers that will ever begin; 0: not known. Asked for again and again while somebody looks on.
  virtual double bytes_in_all() const { return 0; }
  unsigned hosts() const { return static_cast<unsigned>(mesh_.hosts()); }
  /// To be called when something ended or was found to be nothing. It ends, too, when what is left has failed.
  void look_whether_finished(Nanos now);
  void began(Nanos now) { began_ = now; }

  Mesh mesh_;

 private:
  bool finished_ = false;
  Nanos began_ = 0, ended_ = 0;
};

/// Options of such a workload.
class MeshWorkloadOptions : public WorkloadOptions {
 public:
  std::uint32_t packets_in_flight() const final { return mesh_.recovery.packets_in_flight(); }

 protected:
  MeshOptions mesh_;
};

}  // namespace rocebox::nic_model
