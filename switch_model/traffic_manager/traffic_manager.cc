// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/traffic_manager/traffic_manager.h"

#include <algorithm>
#include <bit>

#include "runtime/engine/pipeline.h"
#include "runtime/packet/prefetch.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/hop_fields.h"

namespace rocebox::switch_model {
namespace {

// Bytes that a queue may send in its turn of the round robin: a jumbo frame.
constexpr std::uint64_t kTurnBytes = 9216;
// Pause times count in 512 bit times; a port without a rate counts them as one of 100 Gbps does.
constexpr std::uint64_t kQuantumBits = 512, kRateOfPauses = 100'000'000'000;
constexpr std::uint16_t kPauseForLong = 0xFFFF;

}  // namespace

TrafficManager::TrafficManager(const TrafficManagerConfig& config, const SwitchInfo& info, Stats& stats)
    : info_(info),
      idle_(!config.waits()),
      overhead_(config.overhead),
      buffer_(config.buffer),
      ecn_min_(config.ecn_min),
      ecn_max_(config.ecn_max),
      xoff_(config.xoff),
      xon_(config.xon),
      alpha_(config.alpha),
      ecn_probability_(config.ecn_probability),
      class_of_(config.class_of),
      scheduler_(config.scheduler),
      lossless_(config.lossless()),
      queue_bytes_(info.port_count()),
      slab_(static_cast<std::uint32_t>(config.packets)),
      drop_buffer_full_(stats.counter("drop_buffer_full", "beyond what the shared buffer grants the packet's queue")),
      ecn_not_marked_(stats.counter("ecn_not_marked", "replicas that were to be marked: the pool was dry")),
      ecn_marked_(stats.counter("ecn_marked_packets", "packets marked CE as they entered a queue")),
      buffer_bytes_(stats.level("buffer_bytes", "bytes that are in the shared buffer now")),
      buffer_bytes_max_(stats.peak("buffer_bytes_max", "the most bytes that were in the shared buffer at once")),
      rx_pause_(stats.counter("rx_pause_frames", "pause frames that came in, PFC or 802.3x; they end here")),
      rx_paused_ns_(
          stats.counter("rx_pause_duration_ns",
                        "nanoseconds for which queues were paused, summed up when a frame ends or renews that")),
      tx_pause_(stats.counter("tx_pause_frames", "PFC frames made")) {
  for (Port port = 0; port < info.port_count(); port++)
    ports_.emplace_back(config.rate_of(info, port), config.wire_rate_of(info, port));
  pauses_.reserve(2 * kQueuesPerPort * ports_.size());
}

void TrafficManager::set_rate(Port number, std::uint64_t bits_per_second) {
  PortState& port = ports_[number];
  if (port.rate_bps == bits_per_second) return;
  port.rate_bps = bits_per_second;
  port.transmitter = RateQueue(bits_per_second);
  port.transmitter.accept({port.free_at, 0});
}

std::uint8_t TrafficManager::class_of(Packet packet) const {
  if (class_of_ == ClassOf::kDscp && packet.meta().ip_version != 0) return roce::tos(packet) >> 5;
  if (class_of_ == ClassOf::kPcp && packet.size() > sizeof(roce::Ethernet) && packet.data()[12] == 0x81 &&
      packet.data()[13] == 0)
    return packet.data()[14] >> 5;
  return 0;
}

bool TrafficManager::fits(const Queue& queue, const PacketState& p) const {
  const std::uint64_t bytes = p.packet.wire_bytes();
  if (slab_.full() || used_ + bytes > buffer_) return false;
  if (lossless_ >> p.traffic_class & 1) return true;  // the sender is paused in time, and the buffer is its headroom
  return static_cast<double>(queue.bytes + bytes) <= alpha_ * static_cast<double>(buffer_ - used_);
}

void TrafficManager::mark(Queue& queue, PacketState& p, Context& context, RandomStream& random) {
  if (ecn_max_ == 0 || queue.bytes < ecn_min_) return;
  if (queue.bytes < ecn_max_) {
    const double share = static_cast<double>(queue.bytes - ecn_min_) / static_cast<double>(ecn_max_ - ecn_min_);
    if (static_cast<double>(random() >> 11) * 0x1p-53 >= share * ecn_probability_) return;
  }
  if (!roce::is_markable(p.packet)) return;
  if (!context.own(p.packet)) return ecn_not_marked_.add();
  roce::mark_ce(p.packet);
  ecn_marked_.add();
  queue.marked++;
}

TrafficManager::Admission TrafficManager::admit(PacketState& p, Context& context, RandomStream& random,
                                                Counter*& reason) {
  const Nanos now = context.now();
  p.traffic_class &= kQueuesPerPort - 1;
  PortState& port = ports_[p.egress_port];
  Queue& queue = port.queues[p.traffic_class];
  if (port.free_at <= now && queue.packets.empty() && queue.paused_until <= now) {
    begin(port, p, now);
    queue.sent++;
    return Admission::kSendNow;
  }
  if (!fits(queue, p)) {
    queue.dropped++;
    reason = &drop_buffer_full_;
    return Admission::kDropped;
  }
  mark(queue, p, context, random);
  const std::uint64_t found = queue.bytes;
  queue.bytes += p.packet.wire_bytes();
  queue.bytes_max = std::max(queue.bytes_max, queue.bytes);
  port.waiting++;
  queue_bytes_[p.egress_port].set(queue_bytes_[p.egress_port].read() + p.packet.wire_bytes());
  account(p, true);
  slab_.push(queue.packets, p, now, found);
  port.backlog |= static_cast<std::uint8_t>(1u << p.traffic_class);
  return Admission::kQueued;
}

void TrafficManager::begin(PortState& port, const PacketState& p, Nanos now) {
  if (port.transmitter.unlimited()) return;
  const RateQueue::Free free = port.transmitter.after_the_last(now, wire_bytes(p));
  port.transmitter.accept(free);
  port.sending_bytes = p.packet.wire_bytes();
  port.free_at = free.rounded_up();
}

std::uint32_t TrafficManager::least_queue(std::span<const NextHop> hops, std::uint32_t draw, Nanos now) const {
  const auto depth = [&](const NextHop& hop) {
    const PortState& port = ports_[hop.port];
    return queue_bytes_[hop.port].read() + (port.free_at > now ? port.sending_bytes : 0);
  };
  std::uint64_t least = UINT64_MAX;
  std::uint32_t equal = 0;
  for (const NextHop& hop : hops) {
    const std::uint64_t bytes = depth(hop);
    if (bytes < least) equal = 0;
    least = std::min(least, bytes);
    equal += bytes == least;
  }
  auto left = static_cast<std::uint32_t>(std::uint64_t{draw} * equal >> 32);
  std::uint32_t place = 0;
  while (depth(hops[place]) != least || left-- != 0) place++;
  return place;
}

Nanos TrafficManager::ends_at(Port port, Nanos now) const { return std::max(now, ports_[port].free_at); }

bool TrafficManager::may_send(const PortState& port, unsigned number, Nanos now) {
  return port.backlog >> number & 1 && port.queues[number].paused_until <= now;
}

// The class that may send next; -1: none. Queues in which nothing waits are not touched: they fill many lines of the
// cache.
int TrafficManager::choose(PortState& port, Nanos now) {
  if (scheduler_ == Scheduler::kStrict) {
    for (unsigned left = port.backlog; left;) {
      const auto number = static_cast<unsigned>(std::bit_width(left)) - 1;
      if (may_send(port, number, now)) return static_cast<int>(number);
      left &= ~(1u << number);
    }
    return -1;
  }
  bool any = false;
  for (unsigned number = 0; number < kQueuesPerPort; number++) any |= may_send(port, number, now);
  while (any) {
    Queue& queue = port.queues[port.turn];
    if (may_send(port, port.turn, now)) {
      const std::uint64_t bytes = wire_bytes(slab_.front(queue.packets).state);
      if (queue.deficit >= bytes) {
        queue.deficit -= bytes;
        return static_cast<int>(port.turn);
      }
    } else {
      queue.deficit = 0;
    }
    port.turn = (port.turn + 1) % kQueuesPerPort;
    port.queues[port.turn].deficit += kTurnBytes;
  }
  return -1;
}

bool TrafficManager::next(Port number, Nanos now, PacketState& p, Queueing& queueing) {
  PortState& port = ports_[number];
  if (port.waiting == 0 || port.free_at > now) return false;
  const int chosen = choose(port, now);
  if (chosen < 0) return false;
  Queue& queue = port.queues[static_cast<std::size_t>(chosen)];
  const WaitingPacket waited = slab_.pop(queue.packets);
  p = waited.state;
  queue.bytes -= p.packet.wire_bytes();
  queueing = {waited.entered, waited.found_bytes, queue.bytes};
  queue.sent++;
  if (queue.packets.empty()) port.backlog &= static_cast<std::uint8_t>(~(1u << chosen));
  port.waiting--;
  queue_bytes_[number].set(queue_bytes_[number].read() - p.packet.wire_bytes());
  account(p, false);
  begin(port, p, now);
  return true;
}

void TrafficManager::prefetch(Port number) const {
  const PortState& port = ports_[number];
  prefetch_line(&port);
  prefetch_line(&port.queues[0]);
}

// Nearly all packets are of one class. Of ports that were idle there is nothing more than that.
void TrafficManager::prefetch_turn(bool is_near) const {
  for (const PortState& port : ports_) {
    const Queue& queue = port.queues[0];
    if (!is_near) {
      prefetch_far_line(&port);
      prefetch_far_lines(&queue, &queue + 1);
    } else if (!queue.packets.empty()) {
      slab_.prefetch(queue.packets);
    }
  }
}

Nanos TrafficManager::wake_at(Port number, Nanos now) const {
  const PortState& port = ports_[number];
  if (port.waiting == 0) return kNever;
  if (port.free_at > now) return port.free_at;
  Nanos at = kNever;
  for (unsigned left = port.backlog; left; left &= left - 1)
    at = std::min(at, std::max(now, port.queues[static_cast<unsigned>(std::countr_zero(left))].paused_until));
  return at;
}

// What the buffer holds, of all and by where it came in.
void TrafficManager::account(const PacketState& p, bool enters) {
  const std::uint64_t bytes = p.packet.wire_bytes();
  used_ = enters ? used_ + bytes : used_ - bytes;
  buffer_bytes_.set(used_);
  buffer_bytes_max_.raise_to(used_);
  const auto bit = static_cast<std::uint8_t>(1u << p.traffic_class);
  if (!(lossless_ & bit)) return;
  PortState& from = ports_[p.ingress_port];
  std::uint64_t& held = from.from[p.traffic_class];
  held = enters ? held + bytes : held - bytes;
  if (held > xoff_ && !(from.pausing & bit)) {
    from.pausing |= bit;
    tell(p.ingress_port, p.traffic_class, kPauseForLong);
  } else if (held <= xon_ && (from.pausing & bit)) {
    from.pausing &= static_cast<std::uint8_t>(~bit);
    tell(p.ingress_port, p.traffic_class, 0);
  }
}

// A pause is said again when half of it is over.
void TrafficManager::tell(Port port, std::uint8_t traffic_class, std::uint16_t quanta) {
  pauses_.push_back({port, traffic_class, quanta, pause_time(ports_[port], quanta) / 2});
  tx_pause_.add();
}

Nanos TrafficManager::pause_time(const PortState& port, std::uint64_t quanta) const {
  const std::uint64_t rate = port.wire_bps ? port.wire_bps : kRateOfPauses;
  __extension__ using Wide = unsigned __int128;
  return static_cast<Nanos>(Wide{quanta * kQuantumBits} * kSecond / rate);
}

bool TrafficManager::pause(Port number, Packet packet, Nanos now) {
  constexpr std::uint32_t kType = 0x8808, kPauseAll = 0x0001, kPauseClasses = 0x0101;
  constexpr std::uint32_t kBytes = 18 + 2 * kQueuesPerPort;
  const std::uint8_t* data = packet.data();
  if (packet.size() < kBytes || roce::load_be16(data + 12) != kType) return false;
  const std::uint32_t operation = roce::load_be16(data + 14);
  if (operation != kPauseAll && operation != kPauseClasses) return false;
  PortState& port = ports_[number];
  for (unsigned i = 0; i < kQueuesPerPort; i++) {
    const bool named = operation == kPauseAll || (roce::load_be16(data + 16) >> i & 1);
    const std::uint32_t quanta =
        operation == kPauseAll ? roce::load_be16(data + 16) : roce::load_be16(data + 18 + 2 * i);
    if (!named) continue;
    Queue& queue = port.queues[i];
    const Nanos paused = std::min(now, queue.paused_until) - queue.paused_from;
    if (paused > 0) rx_paused_ns_.add(static_cast<std::uint64_t>(paused));
    queue.paused_from = now;
    queue.paused_until = now + pause_time(port, quanta);
  }
  return true;
}

void TrafficManager::refresh() {
  for (Port number = 0; number < ports_.size(); number++)
    for (std::uint8_t i = 0; i < kQueuesPerPort; i++)
      if (ports_[number].pausing >> i & 1) tell(number, i, kPauseForLong);
}

void TrafficManager::for_each_level(const std::function<void(const std::string&, const Level&)>& each) const {
  for (Port port = 0; port < ports_.size(); port++) each("queue_bytes." + info_.ports[port], queue_bytes_[port]);
}

void TrafficManager::report(Report& report) const {
  struct Row {
    Port port;
    unsigned number;
  };
  std::vector<Row> rows;
  for (Port port = 0; port < ports_.size(); port++)
    for (unsigned i = 0; i < kQueuesPerPort; i++) {
      const Queue& queue = ports_[port].queues[i];
      if (queue.sent || queue.dropped || queue.bytes) rows.push_back({port, i});
    }
  report.table("queues", rows.size(), [&](Report& row, std::size_t i) {
    const Queue& queue = ports_[rows[i].port].queues[rows[i].number];
    row.text("port", info_.ports[rows[i].port]);
    row.count("class_number", rows[i].number);
    row.count("packets", static_cast<std::int64_t>(queue.sent));
    row.count("dropped", static_cast<std::int64_t>(queue.dropped));
    row.count("ecn_marked", static_cast<std::int64_t>(queue.marked));
    row.count("bytes_max", static_cast<std::int64_t>(queue.bytes_max));
    row.count("bytes_waiting", static_cast<std::int64_t>(queue.bytes));
  });
}

}  // namespace rocebox::switch_model
