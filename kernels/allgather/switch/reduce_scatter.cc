// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/switch/reduce_scatter.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "nic_model/host/connect.h"
#include "nic_model/host/workloads/programs.h"
#include "runtime/engine/pipeline.h"
#include "runtime/kernel/carried.h"
#include "runtime/kernel/collectives.h"

namespace rocebox {
namespace reduce {
namespace {

using nic_model::AddressHandle;
using nic_model::CompletionQueue;
using nic_model::Host;
using nic_model::HostProgram;
using nic_model::Qp;

constexpr std::uint32_t kHeadBytes = 40;  // the GRH in front of each datagram
constexpr std::uint32_t kSendDepth = 128, kSignalEvery = 16;
constexpr Nanos kAskAgain = 10 * kMicrosecond;
constexpr std::int64_t kChunksMax = 8192;  // of a block: as many receive requests are posted at once

struct ScatterOptions {
  std::uint64_t bytes = 65536;
  std::int64_t mtu = 4096, generation = 0, float_qkey = 0x52440001, int_qkey = 0x52440002;
  bool whole_numbers = false;
  Nanos timeout = kSecond;
  std::uint32_t qkey() const { return static_cast<std::uint32_t>(whole_numbers ? int_qkey : float_qkey); }
  std::uint32_t chunk_bytes() const { return static_cast<std::uint32_t>(mtu); }
  std::uint32_t chunks() const { return static_cast<std::uint32_t>((bytes + chunk_bytes() - 1) / chunk_bytes()); }
  std::uint32_t bytes_of(std::uint32_t chunk) const {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(chunk_bytes(), bytes - std::uint64_t{chunk} * chunk_bytes()));
  }
};

class IncReduceScatter;

// What runs on one host. Its contribution to word w of a chunk is rank + 1 + w % 8: sums that are exact in both kinds
// of numbers.
class Rank final : public HostProgram {
 public:
  Rank(IncReduceScatter& all, unsigned rank, const WorkloadHost& on, std::int64_t mtu)
      : all_(all), rank_(rank), host_(nic_model::host_of(on, mtu)) {}

  void begin() { program_ = host_.submit(*this); }
  void go() {
    may_send_ = true;
    host_.start_again(program_);
  }
  void on_start(Host& host) override;
  void on_completion(Host& host, CompletionQueue& cq) override;
  void on_timer(Host& host, Timer& timer) override;

  const nic_model::NicConfig& nic() const { return host_.config(); }
  roce::IpAddress address() const;
  std::uint32_t qpn() const { return qp_->number(); }
  Progress progress() const { return host_.progress(program_); }
  std::uint32_t received() const { return received_; }
  std::uint64_t wrong() const { return wrong_; }
  bool gave_up() const { return gave_up_; }

 private:
  void prepare(Host& host);
  void post(Host& host);
  bool post_one(Host& host);
  void receive(Host& host, const ibv_wc& completion);
  void look_at(std::uint32_t slot, std::uint32_t chunk);
  void post_receive(Host& host, std::uint32_t slot);

  IncReduceScatter& all_;
  unsigned rank_;
  Host& host_;
  std::uint32_t program_ = 0, key_ = 0, give_key_ = 0;
  CompletionQueue* cq_ = nullptr;
  Qp* qp_ = nullptr;
  std::vector<std::uint8_t> give_, take_;
  std::vector<bool> came_;
  std::vector<AddressHandle> owners_;
  std::uint32_t stride_ = 0, received_ = 0, posted_ = 0, completed_ = 0;
  unsigned owner_ = 0;       // whose block is being sent
  std::uint32_t chunk_ = 0;  // of it
  std::uint64_t wrong_ = 0;
  bool may_send_ = false, gave_up_ = false;
  std::uint32_t seen_ = 0;  // received_ when the watchdog was armed
  Timer timer_, watchdog_;
};

class IncReduceScatter final : public Workload, public Placer, public CollectiveTimes {
 public:
  IncReduceScatter(const ScatterOptions& options, std::span<const WorkloadHost> hosts) : options_(options) {
    for (unsigned i = 0; i < hosts.size(); i++)
      ranks_.push_back(std::make_unique<Rank>(*this, i, hosts[i], options_.mtu));
    for (const WorkloadHost& host : hosts)
      nic_model::require_source_for(host, first_address(), "the address of `" + hosts[0].name + "`");
    nic_model::plan_queue_pairs(hosts, std::vector<std::uint64_t>(hosts.size(), 1));
  }
  void start(Nanos now) override {
    started_ = now;
    for (unsigned i = 0; i < ranks_.size(); i++)
      flows_.push_back({(i + 1) % static_cast<unsigned>(ranks_.size()), i, options_.bytes, now, kNever});
    for (const auto& rank : ranks_) rank->begin();
  }
  bool finished() const override { return done_ == ranks_.size(); }
  Progress progress() const override {
    Progress sum{chunks_};
    for (const auto& rank : ranks_) sum.add(rank->progress());
    return sum;
  }
  std::span<const FlowRecord> flows() const override { return flows_; }
  std::size_t collectives() const override { return started_ != kNever; }
  Times collective(std::size_t) const override { return {started_, ended_}; }
  double bytes_placed() const override {
    double sum = 0;
    for (std::size_t i = 0; i < flows_.size(); i++) sum += static_cast<double>(bytes_placed(i));
    return sum;
  }
  std::uint64_t bytes_placed(std::size_t number) const override {
    return std::min(options_.bytes, std::uint64_t{options_.chunk_bytes()} * ranks_[number]->received());
  }
  void explain_waiting(Report& report, unsigned lines) const override {
    for (unsigned i = 0; i < ranks_.size() && lines > 0; i++) {
      if (ranks_[i]->received() == options_.chunks()) continue;
      report.text("rank " + std::to_string(i), "has " + std::to_string(ranks_[i]->received()) + " of " +
                                                   std::to_string(options_.chunks()) + " sums");
      lines--;
    }
  }
  void report(Report& report) const override {
    std::uint64_t wrong = 0;
    for (const auto& rank : ranks_) wrong += rank->wrong();
    std::int64_t gave_up = 0, missing = 0;
    for (const auto& rank : ranks_) {
      gave_up += rank->gave_up();
      if (rank->gave_up()) missing += options_.chunks() - rank->received();
    }
    report.count("sums", static_cast<std::int64_t>(chunks_));
    report.count("wrong", static_cast<std::int64_t>(wrong));
    report.count("reduction_timeout", gave_up);
    report.count("sums_missing", missing);
    report.result("completion_time", ended_ != kNever ? std::optional(ended_ - started_) : std::nullopt);
  }

  // For its ranks.

  const ScatterOptions& options() const { return options_; }
  unsigned size() const { return static_cast<unsigned>(ranks_.size()); }
  const Rank& rank(unsigned number) const { return *ranks_[number]; }
  // All have one of its family.
  const roce::IpAddress& first_address() const { return *ranks_.front()->nic().address; }
  // Queue pairs have numbers only once their hosts were called: nobody sends before all were.
  void is_ready() {
    if (++ready_ < ranks_.size()) return;
    for (const auto& rank : ranks_) rank->go();
  }
  void has_chunk(unsigned rank, Nanos now) {
    chunks_++;
    if (ranks_[rank]->received() < options_.chunks()) return;
    flows_[rank].end = now;
    is_done(now);
  }
  void is_done(Nanos now) {
    if (++done_ < ranks_.size()) return;
    ended_ = now;
    tell_finished(now);
  }

 private:
  ScatterOptions options_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<FlowRecord> flows_;
  std::size_t ready_ = 0, done_ = 0;
  std::uint64_t chunks_ = 0;
  Nanos started_ = kNever, ended_ = kNever;
};

roce::IpAddress Rank::address() const { return nic().source_for(all_.first_address()); }

void Rank::prepare(Host& host) {
  const ScatterOptions& options = all_.options();
  stride_ = (kHeadBytes + options.chunk_bytes() + 63) & ~63u;
  give_.resize(options.chunk_bytes());
  for (std::uint32_t word = 0; word < options.chunk_bytes() / 4; word++) {
    const std::uint32_t number = rank_ + 1 + word % 8;
    const auto real = static_cast<float>(number);
    std::memcpy(&give_[4 * word], options.whole_numbers ? static_cast<const void*>(&number) : &real, 4);
  }
  take_.resize(std::size_t{options.chunks()} * stride_);
  came_.resize(options.chunks());
  owners_.resize(all_.size());
  const std::uint32_t domain = host.alloc_pd();
  give_key_ = host.memory().add(domain, give_.data(), give_.size(), 0);
  key_ = host.memory().add(domain, take_.data(), take_.size(), IBV_ACCESS_LOCAL_WRITE);
  cq_ = host.create_cq(kSendDepth + options.chunks(), program_);
  nic_model::QpInit init;
  init.type = IBV_QPT_UD;
  init.domain = domain;
  init.send_cq = init.receive_cq = cq_;
  init.capacity = {kSendDepth, options.chunks(), 1, 1, 0};
  qp_ = host.create_qp(init);
  if (!qp_) broken("a reduction has no queue pair", "rank", rank_);
  nic_model::start_datagrams(host, *qp_, options.qkey());
  for (std::uint32_t slot = 0; slot < options.chunks(); slot++) post_receive(host, slot);
  host.arm(*cq_);
}

void Rank::on_start(Host& host) {
  if (!qp_) {
    prepare(host);
    return all_.is_ready();
  }
  if (!may_send_) return;
  host.arm_timer(program_, watchdog_, host.now() + all_.options().timeout);
  post(host);
}

// Sums of datagrams that were lost, or found no slot in a switch, never come.
void Rank::on_timer(Host& host, Timer& timer) {
  if (gave_up_) return;
  if (&timer != &watchdog_) return post(host);
  if (received_ != seen_) {
    seen_ = received_;
    return host.arm_timer(program_, watchdog_, host.now() + all_.options().timeout);
  }
  gave_up_ = true;
  all_.is_done(host.now());
}

void Rank::post_receive(Host& host, std::uint32_t slot) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(&take_[std::size_t{slot} * stride_]),
              kHeadBytes + all_.options().chunk_bytes(), key_};
  ibv_recv_wr request{slot, nullptr, &sge, 1};
  host.post_receive(*qp_, &request, nullptr);
}

// In the order of owners, as all ranks do: so a switch has few chunks at a time.
void Rank::post(Host& host) {
  while (owner_ < all_.size() && posted_ - completed_ < kSendDepth)
    if (!post_one(host)) return;
}

bool Rank::post_one(Host& host) {
  const ScatterOptions& options = all_.options();
  if (owner_ == rank_ || chunk_ == options.chunks()) {
    owner_++;
    chunk_ = 0;
    return true;
  }
  const Rank& to = all_.rank(owner_);
  if (chunk_ == 0 && host.create_ah(owners_[owner_], to.address(), to.qpn(), options.qkey()) == EAGAIN) {
    host.arm_timer(program_, timer_, host.now() + kAskAgain);
    return false;
  }
  const bool last = chunk_ + 1 == options.chunks();
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(give_.data()), options.bytes_of(chunk_), give_key_};
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.imm_data =
      htobe32(static_cast<std::uint32_t>(options.generation) << 24 | ((owner_ * options.chunks() + chunk_) & 0xFFFFFF));
  const bool signals = last || (posted_ + 1) % kSignalEvery == 0;
  request.wr_id = posted_ + 1;
  request.send_flags = signals ? unsigned{IBV_SEND_SIGNALED} : 0u;
  if (host.post_send(*qp_, &request, nullptr, &owners_[owner_]) != 0)
    broken("a reduction's send was refused", "rank", rank_);
  posted_++;
  chunk_++;
  return true;
}

void Rank::on_completion(Host& host, CompletionQueue& cq) {
  ibv_wc all[32];
  for (int count = host.poll(cq, all); count > 0; count = host.poll(cq, all))
    for (int i = 0; i < count; i++) {
      if (all[i].status != IBV_WC_SUCCESS) continue;  // told by the NIC's counters; the rest waits
      if (all[i].opcode & IBV_WC_RECV)
        receive(host, all[i]);
      else
        completed_ = static_cast<std::uint32_t>(all[i].wr_id);
    }
  host.arm(cq);
  if (may_send_ && !gave_up_) post(host);
}

void Rank::receive(Host& host, const ibv_wc& completion) {
  const ScatterOptions& options = all_.options();
  const std::uint32_t immediate = be32toh(completion.imm_data);
  const std::uint32_t chunk = (immediate & 0xFFFFFF) - ((rank_ * options.chunks()) & 0xFFFFFF);
  if (immediate >> 24 != options.generation || chunk >= options.chunks() || came_[chunk]) {
    wrong_++;
    return post_receive(host, static_cast<std::uint32_t>(completion.wr_id));
  }
  if (gave_up_) return;  // too late
  came_[chunk] = true;
  if (++received_ == options.chunks()) host.cancel_timer(watchdog_);
  if (!host.config().header_only) look_at(static_cast<std::uint32_t>(completion.wr_id), chunk);
  all_.has_chunk(rank_, host.now());
}

// The sum of all others' contributions.
void Rank::look_at(std::uint32_t slot, std::uint32_t chunk) {
  const std::uint32_t ranks = all_.size();
  const std::uint8_t* data = &take_[std::size_t{slot} * stride_ + kHeadBytes];
  for (std::uint32_t word = 0; word < all_.options().bytes_of(chunk) / 4; word++) {
    const std::uint32_t sum = ranks * (ranks + 1) / 2 - (rank_ + 1) + (ranks - 1) * (word % 8);
    const auto real = static_cast<float>(sum);
    const void* expected = all_.options().whole_numbers ? static_cast<const void*>(&sum) : &real;
    if (std::memcmp(data + 4 * word, expected, 4) == 0) continue;
    wrong_++;
    return;
  }
}

class IncReduceScatterOptions final : public WorkloadOptions {
 public:
  void fields(Fields& f) override {
    f.bytes("bytes", options_.bytes, {4, std::uint64_t{1} << 25}, "of each host's block, whose sum it gets");
    f.integer("mtu", options_.mtu, {256, 4096}, "payload of a datagram, a multiple of 4");
    f.integer("generation", options_.generation, {0, 255}, "upper bits of immediates, another one for each use");
    f.boolean("whole_numbers", options_.whole_numbers, "of 32 bits, in place of 32-bit floating point");
    f.integer("float_qkey", options_.float_qkey, {1, 0x7FFFFFFF}, "as the switches have it");
    f.integer("int_qkey", options_.int_qkey, {1, 0x7FFFFFFF}, "as the switches have it");
    f.duration("timeout", options_.timeout, {kMicrosecond, 1000 * kSecond},
               "a host gives its sums up when for so long none has come, since what is lost is not sent again");
    if (options_.bytes % 4 != 0 || options_.mtu % 4 != 0) f.refuse("bytes", "and `mtu` must be multiples of 4");
    if (options_.bytes > static_cast<std::uint64_t>(options_.mtu) * kChunksMax)
      f.refuse("bytes", "must be 8192 datagrams at most");
  }
  Range<std::int64_t> hosts() const override { return {3, 4096}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t) const override {
    return std::make_unique<IncReduceScatter>(options_, hosts);
  }

 private:
  ScatterOptions options_;
};

}  // namespace
}  // namespace reduce

Component inc_reduce_scatter_workload() {
  return workload_component<reduce::IncReduceScatterOptions>(
      "inc_reduce_scatter", "ReduceScatter whose sums switches with the program `inc_reduce` make");
}

}  // namespace rocebox
