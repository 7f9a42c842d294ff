// SPDX-License-Identifier: BSD-3-Clause
// Drives a scenario as replay does, and keeps books of its own.
#include <fmt/format.h>
#include <malloc.h>
#include <xxhash.h>

#include <cstring>

#include "runtime/drives/testbed.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/parse.h"
#include "tests/swarm/judge.h"
#include "tests/unit/harness.h"

namespace rocebox::swarm {
namespace {

constexpr Nanos kDrain = 1000 * kSecond;
constexpr unsigned kDrainStepsMax = 300'000;

std::uint64_t heap_bytes() { return mallinfo2().uordblks; }

class Run {
 public:
  Run(const Scenario& scenario, const Traffic& traffic, Pool& pool, unsigned batch_max, bool keep)
      : scenario_(scenario),
        traffic_(traffic),
        pool_(pool),
        keep_(keep),
        testbed_(
            scenario.config, pool, static_cast<std::uint64_t>(scenario.config.seed),
            [this](FabricPort from, std::span<Packet> packets, Nanos now) { leave(from, packets, now); }, batch_max) {
    testbed_.fabric().let_output_share();
    for (const config::PortName& edge : scenario.edges) edges_.push_back(testbed_.port(edge));
  }

  Outcome run() {
    feed();
    drain();
    check_books();
    return std::move(outcome_);
  }

 private:
  void leave(FabricPort from, std::span<Packet> packets, Nanos now) {
    outcome_.delivered += packets.size();
    std::uint64_t& hash = outcome_.hashes[{from.device, from.port}];
    for (Packet packet : packets) {
      if (!test::parsed_right(packet) && outcome_.mistakes.empty())
        outcome_.mistakes.emplace_back("metadata of a packet that left is not true to its bytes");
      const std::uint64_t head[3] = {hash, static_cast<std::uint64_t>(now), packet.wire_bytes()};
      hash = XXH3_64bits_withSeed(packet.data(), packet.size(), XXH3_64bits(head, sizeof head));
      if (keep_) keep(from, packet, now);
      rte_pktmbuf_free(packet.mbuf());
    }
  }

  // Nothing is believed that the kernels say of the packet.
  void keep(FabricPort from, Packet packet, Nanos now) {
    roce::parse(packet);
    const PacketMeta& meta = packet.meta();
    if (meta.status != ParseStatus::kRoce || meta.payload_bytes < 8) return;
    if (packet.size() < meta.payload_offset + meta.payload_bytes) return;
    if (meta.opcode >= 0xC0) return;  // a manufacturer's own
    const std::uint8_t* payload = packet.data() + meta.payload_offset;
    Left left{0, digest_of(payload, meta.payload_bytes), meta.payload_bytes, now,
              roce::icrc_check(packet) == roce::IcrcStatus::kGood};
    std::memcpy(&left.mark, payload, sizeof left.mark);
    outcome_.left[{from.device, from.port}].push_back(left);
  }

  void feed() {
    Fabric& fabric = testbed_.fabric();
    const auto& packets = traffic_.packets;
    std::uint64_t heap = 0;
    for (std::size_t i = 0; i < packets.size();) {
      const Nanos now = packets[i].at;
      fabric.advance_to(now);
      if (heap == 0 && i > packets.size() / 10) heap = heap_bytes();
      for (; i < packets.size() && packets[i].at == now; i++) {
        PacketPtr packet = pool_.allocate(static_cast<std::uint32_t>(packets[i].bytes.size()));
        if (!packet) continue;  // kernels hold all there are: what they then do is judged, too
        std::memcpy(packet->data(), packets[i].bytes.data(), packets[i].bytes.size());
        packet->meta().wire_bytes = packets[i].wire_bytes;
        fabric.inject(edges_[packets[i].edge], packet.release());
        outcome_.injected++;
      }
      fabric.run(now);
    }
    const std::uint64_t after = heap_bytes();
    outcome_.heap_growth = !keep_ && after > heap ? after - heap : 0;
  }

  void drain() {
    Fabric& fabric = testbed_.fabric();
    const Nanos limit = traffic_.packets.back().at + kDrain;
    unsigned steps = 0;
    while (fabric.next_deadline() <= limit && steps++ < kDrainStepsMax) fabric.run(fabric.next_deadline());
    if (fabric.held() > 0 && fabric.next_deadline() == kNever)
      mistake("{} packets are held, and no timer would let them go", fabric.held());
  }

  void check_books() {
    std::uint64_t in = 0, made = 0, out = 0, dropped = 0, held = 0, replicated = 0;
    for (unsigned i = 0; i < testbed_.device_count(); i++) {
      const Conservation books = testbed_.device(i).books().conservation();
      in += books.in, made += books.made, out += books.out, dropped += books.dropped, held += books.held();
      if (books.held() > books.in + books.made)
        mistake("device {}: more left than came: in {} made {} out {} dropped {}", testbed_.device(i).name(), books.in,
                books.made, books.out, books.dropped);
      testbed_.device(i).books().for_each_counter([&](const CounterView& view) {
        if (view.name == "replicated") replicated += view.value;
      });
    }
    // What one device hands to the next is out of the one and into the other.
    if (in - outcome_.injected != out - outcome_.delivered)
      mistake("injected {} delivered {}, but devices say in {} out {}", outcome_.injected, outcome_.delivered, in, out);
    // Replicas that are held may have their bytes in a packet that is gone: one more of the pool each.
    if (pool_.in_use() < held || pool_.in_use() > held + std::min(held, replicated))
      mistake("in {} made {} out {} dropped {}: {} held, but {} of the pool are in use", in, made, out, dropped, held,
              pool_.in_use());
  }

  template <class... T>
  void mistake(fmt::format_string<T...> text, T&&... values) {
    outcome_.mistakes.push_back(fmt::format(text, std::forward<T>(values)...));
  }

  const Scenario& scenario_;
  const Traffic& traffic_;
  Pool& pool_;
  bool keep_;
  Testbed testbed_;
  std::vector<FabricPort> edges_;
  Outcome outcome_;
};

}  // namespace

Outcome run_scenario(const Scenario& scenario, const Traffic& traffic, Pool& pool, unsigned batch_max, bool keep) {
  Outcome outcome = Run(scenario, traffic, pool, batch_max, keep).run();
  if (pool.in_use() != 0) outcome.mistakes.push_back(fmt::format("{} packets have leaked", pool.in_use()));
  return outcome;
}

}  // namespace rocebox::swarm
