// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/record_ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <thread>

namespace rocebox::record_ring_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

// A record says how long it is, and the rest follows from its number.
Bytes numbered(std::uint32_t number, std::uint32_t bytes) {
  Bytes record(8 + bytes);
  std::memcpy(record.data(), &number, 4);
  std::memcpy(record.data() + 4, &bytes, 4);
  for (std::uint32_t i = 0; i < bytes; i++) record[8 + i] = static_cast<std::uint8_t>(number * 31 + i);
  return record;
}

bool put(RecordRing& ring, const Bytes& record) {
  std::byte* room = ring.claim(static_cast<std::uint32_t>(record.size()));
  if (!room) return false;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room) % 16, 0u);
  std::memcpy(room, record.data(), record.size());
  ring.commit();
  return true;
}

Bytes take(RecordRing& ring) {
  const std::byte* record = ring.front();
  if (!record) return {};
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, record + 4, 4);
  Bytes copy(8 + bytes);
  std::memcpy(copy.data(), record, copy.size());
  ring.pop();
  return copy;
}

// Against a plain queue: what is taken in comes out whole and in order, and nothing is refused while half is free.
TEST(RecordRing, IsAQueueForRecordsOfAnySize) {
  RecordRing ring(4096);
  std::deque<Bytes> model;
  std::mt19937 random(7);
  unsigned refused = 0;
  for (std::uint32_t number = 0; number < 200'000; number++) {
    if (random() % 2 && !model.empty()) {
      ASSERT_EQ(take(ring), model.front());
      model.pop_front();
      continue;
    }
    const Bytes record = numbered(number, static_cast<std::uint32_t>(random() % 1500));
    const bool half_free = ring.used() <= ring.capacity() / 2 && record.size() + 32 < ring.capacity() / 4;
    const bool taken = put(ring, record);
    ASSERT_TRUE(taken || !half_free);
    if (taken) model.push_back(record);
    refused += !taken;
  }
  EXPECT_GT(refused, 100u) << "the ring was full at times";
  for (; !model.empty(); model.pop_front()) ASSERT_EQ(take(ring), model.front());
  EXPECT_EQ(ring.front(), nullptr);
  EXPECT_EQ(ring.used(), 0u);
}

TEST(RecordRing, RefusesWhatIsLargerThanItself) {
  RecordRing ring(1024);
  EXPECT_EQ(ring.claim(1024), nullptr);
  EXPECT_EQ(ring.claim(UINT32_MAX), nullptr);
  EXPECT_TRUE(put(ring, numbered(1, 1024 - 16 - 8)));
  EXPECT_FALSE(put(ring, numbered(2, 0)));
  EXPECT_EQ(take(ring), numbered(1, 1024 - 16 - 8));
  EXPECT_TRUE(put(ring, numbered(3, 0)));
}

TEST(RecordRing, OneThreadToAnother) {
  RecordRing ring(16384);
  constexpr std::uint32_t kRecords = 50'000;
  std::thread core([&] {
    std::mt19937 random(9);
    for (std::uint32_t number = 0; number < kRecords; number++) {
      const Bytes record = numbered(number, static_cast<std::uint32_t>(random() % 600));
      while (!put(ring, record)) std::this_thread::yield();
    }
  });
  std::mt19937 random(9);
  for (std::uint32_t number = 0; number < kRecords; number++) {
    while (!ring.front()) std::this_thread::yield();
    ASSERT_EQ(take(ring), numbered(number, static_cast<std::uint32_t>(random() % 600)));
  }
  core.join();
}

}  // namespace
}  // namespace rocebox::record_ring_test
