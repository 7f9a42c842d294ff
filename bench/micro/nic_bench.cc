// SPDX-License-Identifier: BSD-3-Clause
// Two NICs back to back on one core: what a message and a packet cost at both of them together, and memcpy beside it,
// in turn with it. All by the thread's CPU time, the best of many rounds: other work on the machine only ever adds
// time.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <optional>

#include "bench/micro/packets.h"
#include "nic_model/host/connect.h"
#include "nic_model/nic.h"
#include "runtime/component/registry.h"
#include "runtime/config/document.h"
#include "runtime/config/fields_reader.h"
#include "runtime/engine/fabric.h"
#include "runtime/engine/pipeline_device.h"

namespace rocebox::bench {
namespace {

double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

std::size_t heap_bytes() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

// As many messages as there may be, posted again as they are completed.
class Sender final : public nic_model::HostProgram {
 public:
  Sender(nic_model::Host& host, std::uint32_t message_bytes, unsigned qps, unsigned depth, std::size_t buffers)
      : bytes_(message_bytes),
        qps_(qps),
        depth_(depth),
        buffers_(buffers),
        buffer_(new std::uint8_t[buffer_bytes()]()),
        host_(host) {
    program_ = host.submit(*this);
  }
  void on_start(nic_model::Host& host) override {
    const std::size_t before = heap_bytes();
    if (!pairs.empty()) {
      for (unsigned i = 0; i < qps_; i++)
        nic_model::connect(host, *pairs[i], {other->host_.config().source_for({}), other->pairs[i]->number()},
                           {.mtu = 4096});
      state_bytes += heap_bytes() - before;
      piece_ = {0, bytes_, key_};
      request_.opcode = IBV_WR_RDMA_WRITE;
      request_.sg_list = &piece_;
      request_.num_sge = 1;
      request_.send_flags = IBV_SEND_SIGNALED;
      request_.wr.rdma.rkey = other->key_;
      other_address_ = other->address();
      for (unsigned n = 0; sends && n < depth_; n++)
        for (unsigned i = 0; i < qps_; i++) post(host, i);
      return;
    }
    const std::uint32_t domain = host.alloc_pd();
    key_ = host.config().header_only
               ? host.memory().add_without_bytes(domain, 0, UINT64_MAX, nic_model::ConnectOptions().access)
               : host.memory().add(domain, buffer_.get(), buffer_bytes(), nic_model::ConnectOptions().access);
    cq_ = host.create_cq(2 * qps_ * depth_, program_);
    pairs.reserve(qps_);
    const std::size_t without = heap_bytes();
    for (unsigned i = 0; i < qps_; i++) {
      nic_model::QpInit init;
      init.domain = domain;
      init.send_cq = init.receive_cq = cq_;
      init.capacity = {depth_, 1, 1, 1, 0};
      pairs.push_back(host.create_qp(init));
    }
    state_bytes = heap_bytes() - without;
    host.arm(*cq_);
  }
  void on_completion(nic_model::Host& host, nic_model::CompletionQueue& cq) override {
    ibv_wc completions[32];
    for (int count; (count = host.poll(cq, completions)) > 0;)
      for (int i = 0; i < count; i++) {
        if (completions[i].status != IBV_WC_SUCCESS) failed = true;
        done++;
        post(host, static_cast<unsigned>(completions[i].wr_id));
      }
    host.arm(cq);
  }
  std::uint8_t* buffer() const { return buffer_.get(); }
  bool header_only() const { return host_.config().header_only; }
  void go_on() { host_.start_again(program_); }

  Sender* other = nullptr;
  std::vector<nic_model::Qp*> pairs;
  std::uint64_t done = 0;
  std::size_t state_bytes = 0;  // of its queue pairs
  bool sends = false, failed = false;

 private:
  void post(nic_model::Host& host, unsigned pair) {
    const std::uint64_t offset = (next_++ % buffers_) * std::uint64_t{bytes_};
    piece_.addr = address() + offset;
    request_.wr_id = pair;
    request_.wr.rdma.remote_addr = other_address_ + offset;
    host.post_send(*pairs[pair], &request_, nullptr);
  }
  std::size_t buffer_bytes() const { return std::size_t{bytes_} * buffers_; }
  std::uint64_t address() const {
    return host_.config().header_only ? 0 : reinterpret_cast<std::uintptr_t>(buffer_.get());
  }

  std::uint32_t bytes_, program_ = 0, key_ = 0;
  unsigned qps_, depth_;
  std::size_t buffers_;
  std::uint64_t next_ = 0, other_address_ = 0;
  ibv_sge piece_{};  // one request, of which each that is posted has its own places
  ibv_send_wr request_{};
  std::unique_ptr<std::uint8_t[]> buffer_;
  nic_model::CompletionQueue* cq_ = nullptr;
  nic_model::Host& host_;
};

class BackToBack {
 public:
  BackToBack(const std::string& nic, std::uint32_t message_bytes, unsigned qps, std::size_t buffers)
      : fabric([](FabricPort, std::span<Packet>, Nanos) {}) {
    for (unsigned side = 0; side < 2; side++) {
      config::Mistakes mistakes("bench");
      const config::Node node = config::parse_yaml(
          "address: 10.0.0." + std::to_string(side + 1) + "\nqueue_pairs: 16384\nneighbors: [{address: 10.0.0." +
              std::to_string(2 - side) + ", mac: 02:72:0a:00:00:0" + std::to_string(2 - side) + "}]\n" + nic,
          mistakes);
      config::FieldsReader reader(&node, mistakes);
      static const Registry registry;
      options[side] = registry.find("nic")->options(registry);
      options[side]->fields(reader);
      std::vector<KernelPlan> plans;
      plans.push_back({"nic", "nic", Shape::kOneWay, {{Edge::kOutside, 0}}, [this, side](Stats& stats) {
                         return static_cast<const KernelOptions&>(*options[side]).make(stats);
                       }});
      devices.push_back(std::make_unique<PipelineDevice>("d" + std::to_string(side), std::vector<std::string>{"wire"},
                                                         std::vector<Edge>{{0, 0}}, std::move(plans), pool(), 1));
      fabric.add(*devices[side]);
      auto& host = static_cast<nic_model::Nic&>(devices[side]->kernel(0)).host();
      host.set_waker([this, side] { fabric.wake(side); });
      senders.push_back(std::make_unique<Sender>(host, message_bytes, qps, qps > 64 ? 4 : 64, buffers));
    }
    fabric.join({0, 0}, {1, 0});
    senders[0]->other = senders[1].get();
    senders[1]->other = senders[0].get();
    senders[0]->sends = true;
    fabric.run(0);
    for (unsigned side = 2; side-- > 0;) {
      senders[side]->go_on();
      fabric.run(0);
    }
  }

  std::unique_ptr<Options> options[2];
  std::vector<std::unique_ptr<PipelineDevice>> devices;
  std::vector<std::unique_ptr<Sender>> senders;
  Fabric fabric;
};

// Messages are taken out of so many buffers in turn, 256 KiB of 4096 B: beyond the first cache. And 64 MiB, beyond all.
constexpr std::size_t kBuffers = 64, kManyBuffers = 16384;

struct Case {
  const char *label, *nic;
  std::uint32_t bytes;
  unsigned qps;
  std::size_t buffers = kBuffers;
};
constexpr Case kCases[] = {
    {"WRITE 4096 B", "{}", 4096, 1},
    {"WRITE 4096 B, ICRC left to the port", "icrc: false", 4096, 1},
    {"WRITE 4096 B, buffers of 64 MiB", "{}", 4096, 1, kManyBuffers},
    {"WRITE 4096 B, ICRC left to the port, buffers of 64 MiB", "icrc: false", 4096, 1, kManyBuffers},
    {"WRITE 64 B", "{}", 64, 1},
    {"WRITE 4096 B, headers alone", "header_only: true", 4096, 1},
    {"WRITE 4096 B, headers alone, 64 QPs", "header_only: true", 4096, 64},
    {"WRITE 4096 B, headers alone, 8192 QPs", "header_only: true", 4096, 8192},
};

// What the same bytes cost that are copied twice: out of the sender's buffers into packets of the pool, as many as a
// burst has, and out of them into the receiver's buffers. Each packet is copied out of at once: the NICs' are older.
class Copies {
 public:
  Copies(const Sender& from, const Sender& to, std::size_t messages)
      : messages_(messages), rounds_(messages > kBuffers ? 1 : 16), from_(from.buffer()), to_(to.buffer()) {
    for (PacketPtr& packet : packets_) packet = pool().allocate(kHeaderBytes + kBytes);
  }
  double ns() const {
    const double start = cpu_ns();
    for (unsigned round = 0; round < rounds_; round++)
      for (std::size_t i = 0; i < messages_; i++) {
        std::uint8_t* const payload = packets_[i % packets_.size()]->data() + kHeaderBytes;
        std::memcpy(payload, from_ + i * kBytes, kBytes);
        std::memcpy(to_ + i * kBytes, payload, kBytes);
        benchmark::ClobberMemory();
      }
    return (cpu_ns() - start) / static_cast<double>(rounds_ * messages_);
  }
  static constexpr std::size_t kBytes = 4096;

 private:
  std::size_t messages_, rounds_;
  static constexpr std::uint32_t kHeaderBytes = 14 + 20 + 8 + 12 + 16;  // of a WRITE over IPv4
  const std::uint8_t* from_;
  std::uint8_t* to_;
  std::array<PacketPtr, nic_model::kSendBurst> packets_;
};

void nic(benchmark::State& state) {
  const Case& which = kCases[state.range(0)];
  BackToBack pair(which.nic, which.bytes, which.qps, which.buffers);
  const auto until = [&](std::uint64_t messages) {
    while (pair.senders[0]->done < messages) pair.fabric.run(pair.fabric.next_deadline());
  };
  const auto packets = [&] {
    return pair.devices[0]->books().conservation().made + pair.devices[1]->books().conservation().made;
  };
  // Each queue pair, its rings and its packets have been used before.
  until(10000 + 8 * std::uint64_t{which.qps} * (which.qps > 64 ? 4 : 64));
  std::optional<Copies> copies;
  if (which.bytes == Copies::kBytes && !pair.senders[0]->header_only())
    copies.emplace(*pair.senders[0], *pair.senders[1], which.buffers);
  double best = std::numeric_limits<double>::max(), best_packet = best, best_copy = best;
  for (auto _ : state) {
    const std::uint64_t before = pair.senders[0]->done, packets_before = packets();
    const double start = cpu_ns();
    until(before + std::max<std::size_t>({4096, which.qps, which.buffers}));
    const double time = cpu_ns() - start;
    best = std::min(best, time / static_cast<double>(pair.senders[0]->done - before));
    best_packet = std::min(best_packet, time / static_cast<double>(packets() - packets_before));
    if (copies) best_copy = std::min(best_copy, copies->ns());
  }
  if (pair.senders[0]->failed) state.SkipWithError("a WRITE failed");
  static double one_queue_pair = 0;  // ns a packet, headers alone
  if (which.qps == 1) one_queue_pair = best_packet;
  state.SetLabel(which.label);
  state.counters["message_ns"] = best;
  state.counters["M_messages"] = 1e3 / best;
  state.counters["packet_ns"] = best_packet;
  state.counters["M_packets"] = 1e3 / best_packet;
  if (copies) {
    state.counters["bytes_per_ns"] = which.bytes / best;
    state.counters["memcpy_ns"] = best_copy;
    state.counters["memcpy_bytes_per_ns"] = Copies::kBytes / best_copy;
    state.counters["of_memcpy"] = best_copy / best;
  }
  if (which.qps > 1) {
    state.counters["of_one_qp"] = best_packet / one_queue_pair;
    state.counters["qp_bytes"] = static_cast<double>(pair.senders[0]->state_bytes) / which.qps;
  }
}
BENCHMARK(nic)->ArgName("case")->DenseRange(0, std::size(kCases) - 1)->MinTime(0.5);

}  // namespace
}  // namespace rocebox::bench
