// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "runtime/process/file_place.h"

namespace rocebox {
namespace {

// How often the rings are looked at, and how old a record is before those of other cores are taken to be there too.
constexpr auto kEvery = std::chrono::milliseconds(5);
constexpr Nanos kSettled = 10 * kMillisecond;
// Records written between two looks at limits and requests.
constexpr unsigned kRecordsAtATime = 4096;

}  // namespace

Recorder::Recorder(Live& live, const config::RunConfig& config, std::size_t ring_bytes)
    : live_(live), config_(config), ring_bytes_(ring_bytes), thread_([this] { work(); }) {}

Recorder::~Recorder() { finish(); }

bool Recorder::any() const {
  for (const Slot& slot : slots_)
    if (slot.recording) return true;
  return false;
}

void Recorder::spare(const RunFiles& files) {
  const Hold hold(*this);
  spared_.merge(files);
}

std::vector<std::string> Recorder::spared() const {
  const Hold hold(*this);
  return spared_.rows();
}

unsigned Recorder::start(RecordingRequest request) {
  const Hold hold(*this);
  if (finished_) throw ConfigError("the run has ended");
  for (const std::string& file : request.files)
    if (const std::string what = spared_.what_is(file); !what.empty() && !request.of_command_line)
      throw ConfigError(fmt::format("{}: is {} of the run; an output must be a file of its own", file, what));
  unsigned tried = 0;
  // Slots take turns, so that marks of a trace that has ended are on none of the packets that are still held.
  while (tried < kRecordingsMax && slots_[(next_slot_ + tried) % kRecordingsMax].recording) tried++;
  if (tried == kRecordingsMax)
    throw ConfigError(fmt::format("{} traces and captures are running, which is the most; end one", kRecordingsMax));
  for (const Slot& slot : slots_)
    if (slot.recording)
      for (const std::string& file : request.files)
        for (const std::string& other : slot.recording->request().files)
          if (const std::string key = file_key(file, STDOUT_FILENO);
              !key.empty() && key == file_key(other, STDOUT_FILENO))
            throw ConfigError(fmt::format("{}: number {} is being written to it", file, slot.recording->id()));
  const unsigned number = (next_slot_ + tried) % kRecordingsMax;
  auto recording = std::make_unique<Recording>(next_id_, std::move(request), config_, live_);
  if (boxes_.empty()) {
    for (Shard* shard : live_.shards()) {
      RecordBox& box = *boxes_.emplace_back(std::make_unique<RecordBox>(ring_bytes_));
      std::deque<Tap>& taps = taps_.emplace_back();
      for (unsigned d = 0; d < shard->testbed().device_count(); d++) taps.emplace_back(box, d);
    }
  }
  Slot& slot = slots_[number];
  slot.stop = false;
  slot.lost_before.clear();
  for (const auto& box : boxes_) slot.lost_before.push_back(box->lost[number].read());
  slot.recording = std::move(recording);
  next_slot_ = (number + 1) % kRecordingsMax;
  attach(number, slot.recording.get());
  wake_.notify_one();
  return next_id_++;
}

// Null: nobody is in the slot any more.
void Recorder::attach(unsigned slot, const Recording* recording) {
  live_.for_each_shard([&](Shard& shard) {
    std::deque<Tap>& taps = taps_[shard.number()];
    for (unsigned d = 0; d < taps.size(); d++) {
      taps[d].set(slot, recording ? recording->selection(shard.number(), d) : nullptr);
      shard.testbed().device(d).set_trace(taps[d].idle() ? nullptr : &taps[d]);
    }
  });
}

void Recorder::stop(unsigned id) {
  const Hold hold(*this);
  for (Slot& slot : slots_) {
    if (!slot.recording || slot.recording->id() != id) continue;
    slot.stop = true;
    wake_.notify_one();
    return;
  }
  throw ConfigError(fmt::format("no trace or capture number {} is running", id));
}

Json Recorder::list() const {
  const Hold hold(*this);
  Json rows = Json::array();
  for (const Json& row : ended_) rows.push_back(row);
  for (unsigned i = 0; i < slots_.size(); i++)
    if (const Slot& slot = slots_[i]; slot.recording)
      rows.push_back(slot.recording->row(slot.stop ? "ending" : "running", lost(i)));
  return rows;
}

std::uint64_t Recorder::lost(unsigned slot) const {
  std::uint64_t sum = 0;
  for (std::size_t s = 0; s < boxes_.size(); s++) sum += boxes_[s]->lost[slot].read() - slots_[slot].lost_before[s];
  return sum;
}

// Writes records in the order of time up to `limit`. True when there may be more.
bool Recorder::write_until(Nanos limit) {
  for (unsigned written = 0; written < kRecordsAtATime; written++) {
    const Record* oldest = nullptr;
    std::size_t from = 0;
    for (std::size_t s = 0; s < boxes_.size(); s++) {
      const auto* record = reinterpret_cast<const Record*>(boxes_[s]->ring.front());
      if (record && (!oldest || record->at < oldest->at)) oldest = record, from = s;
    }
    if (!oldest) return false;
    RecordRing& ring = boxes_[from]->ring;
    if (oldest->at > limit) return false;
    for (unsigned i = 0; i < slots_.size(); i++)
      if (slots_[i].recording && (oldest->takers & 1u << i))
        slots_[i].recording->write(static_cast<unsigned>(from), *oldest,
                                   reinterpret_cast<const std::byte*>(oldest + 1));
    ring.pop();
  }
  return true;
}

// Whether a ring is half full: order matters less than room then.
bool Recorder::fills() {
  return std::any_of(boxes_.begin(), boxes_.end(),
                     [](const auto& box) { return box->ring.used() > box->ring.capacity() / 2; });
}

// What was recorded for it up to now is in the rings, and is written before its files are completed.
void Recorder::end(unsigned number) {
  Slot& slot = slots_[number];
  attach(number, nullptr);
  const Nanos now = live_.clock().now();
  while (write_until(now)) {
  }
  slot.recording->finish(lost(number));
  ended_.push_back(slot.recording->row(slot.recording->error().empty() ? "done" : "failed", lost(number)));
  if (ended_.size() > kRecordingsEndedMax) ended_.pop_front();
  slot.recording.reset();
}

void Recorder::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!any()) {
      if (finished_) return;
      wake_.wait(lock);
      continue;
    }
    const Nanos now = live_.clock().now();
    const bool more = write_until(boxes_.size() > 1 && !fills() ? now - kSettled : now);
    for (unsigned i = 0; i < slots_.size(); i++)
      if (slots_[i].recording && (finished_ || slots_[i].stop || slots_[i].recording->due(now))) end(i);
    for (Slot& slot : slots_)
      if (slot.recording && !more) slot.recording->flush_direct();
    if (more) {
      lock.unlock();
      while (asked_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
      lock.lock();
    } else {
      wake_.wait_for(lock, kEvery);
    }
  }
}

void Recorder::finish() {
  {
    const Hold hold(*this);
    finished_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace rocebox
