// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/observer/observer.h"

#include "runtime/packet/prefetch.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/multicast.h"
#include "runtime/roce/parse.h"

namespace rocebox::allgather {
namespace {

std::uint32_t size_of(std::int64_t option) { return static_cast<std::uint32_t>(option); }
std::uint32_t low_bits(std::int64_t bits) { return static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1); }

}  // namespace

Observer::Observer(const Config& config, Stats& stats)
    : config_(config),
      count_(stats),
      check_icrc_(config.check_icrc),
      cutoff_(config.cutoff),
      window_(size_of(config.window)),
      chunk_mask_(low_bits(config.chunk_bits)),
      collective_mask_(low_bits(config.collective_bits)),
      events_max_(size_of(config.events)),
      staging_{config.copy_rate, config.copy_latency, size_of(config.staging_slots),
               static_cast<std::uint32_t>(config.slot_bytes)},
      table_(size_of(config.streams)),
      streams_(table_.capacity()),
      windows_(std::size_t{table_.capacity()} * (window_ / 64), flows::Pages::kSmall, flows::Touch::kAsUsed),
      collective_table_(size_of(config.collectives)),
      collectives_(collective_table_.capacity()),
      group_table_(size_of(config.groups)),
      groups_(group_table_.capacity()),
      slots_(std::size_t{group_table_.capacity()} * staging_.slots, flows::Pages::kSmall, flows::Touch::kAsUsed),
      events_(events_max_, flows::Pages::kSmall, flows::Touch::kAsUsed) {}

struct Observer::Switch final : Change {
  Switch(bool icrc, Nanos late) : check_icrc(icrc), cutoff(late) {}
  void apply(Kernel& kernel, Nanos) override {
    auto& observer = static_cast<Observer&>(kernel);
    observer.check_icrc_ = check_icrc;
    observer.cutoff_ = cutoff;
  }
  bool check_icrc;
  Nanos cutoff;
};

std::unique_ptr<Change> Observer::prepare(const Config& config) const {
  Config fixed = config;
  fixed.check_icrc = config_.check_icrc;
  fixed.cutoff = config_.cutoff;
  if (fixed != config_)
    throw ConfigError("of allgather's options only `cutoff` and `check_icrc` can be changed while it runs");
  return std::make_unique<Switch>(config.check_icrc, config.cutoff);
}

void Observer::process(Context& context, Port, Batch& batch) {
  // Three rounds, so that the memory of all packets' streams is on its way before the first is counted.
  std::array<Lookup, kBatchMax> lookups;
  const unsigned size = batch.size();
  for (unsigned i = 0; i < size; i++) {
    lookups[i].counts = name(batch[i], lookups[i]);
    if (!lookups[i].counts) continue;
    lookups[i].hash = Streams::hash(lookups[i].key);
    table_.prefetch(lookups[i].hash);
  }
  for (unsigned i = 0; i < size; i++) {
    if (!lookups[i].counts) continue;
    lookups[i].index = table_.find(lookups[i].key, lookups[i].hash);
    if (lookups[i].index == kNone) continue;
    prefetch_line(&streams_[lookups[i].index]);
    prefetch_line(words(lookups[i].index) + (lookups[i].chunk & (window_ - 1)) / 64);
  }
  for (unsigned i = 0; i < size; i++)
    if (lookups[i].counts) receive(batch[i], lookups[i], context.now());
  count_.packets.add(size);
}

bool Observer::refuse(Counter& reason) {
  reason.add();
  return false;
}

// Whether it is a datagram for a group that names a chunk.
bool Observer::name(Packet packet, Lookup& lookup) {
  const PacketMeta& meta = packet.meta();
  if (meta.bth_offset == 0) return false;
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  if (info.service != roce::Service::kUd && info.service != roce::Service::kUc) return false;
  const roce::Addresses addresses = roce::addresses(packet);
  if (!roce::is_multicast(addresses.destination)) return false;
  if (!roce::is_roce(packet)) return refuse(count_.trimmed);
  if (!info.has(roce::kStartsMessage) || !info.has(roce::kEndsMessage)) return refuse(count_.uc_parts);
  const roce::ImmDt* immediate = roce::immdt(packet);
  if (!info.has(roce::kHasImmDt)) return refuse(count_.without_immediate);
  const roce::Deth* deth = roce::deth(packet);
  if (!immediate || (info.has(roce::kHasDeth) && !deth)) return refuse(count_.trimmed);
  const auto word = static_cast<std::uint32_t>(immediate->data);
  lookup.key = {addresses.destination, addresses.source, deth ? static_cast<std::uint32_t>(deth->source_qp) : 0,
                static_cast<std::uint32_t>(std::uint64_t{word} >> config_.chunk_bits)};
  lookup.chunk = word & chunk_mask_;
  return true;
}

void Observer::receive(Packet packet, Lookup& lookup, Nanos now) {
  count_.datagrams.add();
  if (check_icrc_) {
    const roce::IcrcStatus status = roce::icrc_check(packet);
    if (status == roce::IcrcStatus::kBad) return count_.icrc_errors.add();
    if (status == roce::IcrcStatus::kUnverifiable) count_.icrc_unverified.add();
  }
  // An earlier packet of the batch may have made the stream.
  if (lookup.index == kNone) lookup.index = table_.find(lookup.key, lookup.hash);
  if (lookup.index == kNone) lookup.index = make(lookup, now);
  if (lookup.index == kNone) return;
  count(lookup.index, lookup.chunk, packet.meta().payload_bytes, now);
}

// A stream's collective and group have room before it has.
std::uint32_t Observer::make(const Lookup& lookup, Nanos now) {
  const std::uint32_t group = group_table_.insert({lookup.key.group});
  if (group == kNone) {
    count_.groups_full.add();
    return kNone;
  }
  const std::uint32_t known = collective_table_.size(), collective = collective_table_.insert(lookup.key.tag);
  if (collective == kNone) {
    count_.collectives_full.add();
    return kNone;
  }
  if (collective == known) collectives_[collective] = {now, now};
  const std::uint32_t index = table_.insert(lookup.key, lookup.hash);
  if (index == kNone) {
    count_.streams_full.add();
    return kNone;
  }
  Stream& stream = streams_[index];
  stream.collective = collective;
  stream.group = group;
  stream.first_at = stream.last_at = now;
  return index;
}

void Observer::begin_again(std::uint32_t index, Nanos now) {
  Stream& stream = streams_[index];
  log(EventKind::kRestart, index, 0, 1, now);
  count_.restarts.add();
  count_.missing_at_restart.add(stream.window.missing(static_cast<std::uint64_t>(config_.block_chunks)));
  stream.window.clear(words(index), window_);
  stream.restarts++;
  stream.duplicates = stream.out_of_order = stream.late = stream.beyond_window = 0;
  stream.bytes = 0;
  stream.first_at = now;
}

void Observer::count(std::uint32_t index, std::uint32_t chunk, std::uint32_t bytes, Nanos now) {
  Stream& stream = streams_[index];
  if (now - stream.last_at > config_.restart_after) begin_again(index, now);
  Collective& collective = collectives_[stream.collective];
  if (now - collective.last_at > config_.restart_after) collective.first_at = now;
  stream.last_at = collective.last_at = now;
  if (staging_.slots != 0 && !groups_[stream.group].receive(slots_.data() + std::size_t{stream.group} * staging_.slots,
                                                            staging_, bytes, now)) {
    count_.overruns.add();
    log(EventKind::kOverrun, index, chunk, 1, now);
  }
  std::uint32_t skipped = 0;
  switch (stream.window.add(words(index), window_, chunk, skipped)) {
    case ChunkFate::kDuplicate:
      stream.duplicates++;
      count_.duplicates.add();
      return log(EventKind::kDuplicate, index, chunk, 1, now);
    case ChunkFate::kBeyondWindow:
      stream.beyond_window++;
      count_.beyond_window.add();
      return log(EventKind::kBeyondWindow, index, chunk, 1, now);
    case ChunkFate::kSkips:
      count_.skipped.add(skipped);
      log(EventKind::kSkipped, index, chunk - skipped, skipped, now);
      break;
    case ChunkFate::kOutOfOrder:
      stream.out_of_order++;
      count_.out_of_order.add();
      log(EventKind::kOutOfOrder, index, chunk, 1, now);
      break;
    case ChunkFate::kNext:
      break;
  }
  stream.bytes += bytes;
  count_.bytes.add(bytes);
  count_.chunks.add();
  if (cutoff_ == 0 || now - collective.first_at < cutoff_) return;
  stream.late++;
  count_.late.add();
  log(EventKind::kLate, index, chunk, 1, now);
}

// Like the one before and going on from its chunks: one event.
void Observer::log(EventKind kind, std::uint32_t stream, std::uint32_t chunk, std::uint32_t count, Nanos now) {
  if (events_size_ > 0 && kind != EventKind::kRestart) {
    Event& last = events_[events_size_ - 1];
    if (last.kind == kind && last.stream == stream && chunk == last.chunk + last.count) {
      last.count += count;
      return;
    }
  }
  if (events_size_ == events_max_ || events_unlisted_ > 0) {  // the first ones without a gap
    events_unlisted_++;
    return;
  }
  events_[events_size_++] = {now, stream, chunk, count, kind};
}

}  // namespace rocebox::allgather
