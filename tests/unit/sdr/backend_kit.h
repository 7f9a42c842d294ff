// SPDX-License-Identifier: BSD-3-Clause
// Two NICs with SDR's backend on each, and a queue pair of SDR between them.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/sdr/backend/queue_pair.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::sdr {

inline QueuePairOptions small_queue_pair() {
  QueuePairOptions o;
  o.mtu = 1024;
  o.packets_a_chunk = 4;
  o.slots = 4;
  o.message_bytes = 64 << 10;
  o.channels = 2;
  return o;
}

class SdrBox : public test::NicBox {
 public:
  explicit SdrBox(const QueuePairOptions& with, const std::string& link = "delay: 1us",
                  const std::string& nic = "rate: 100Gbps\nqueue_pairs: 2048\ndpa: {heap: 64MiB}",
                  std::uint32_t senders = 0, std::uint32_t queue_pairs_max = 8)
      : NicBox(nic, link), memory{std::vector<std::uint8_t>(kBytes), std::vector<std::uint8_t>(kBytes)} {
    for (unsigned side = 0; side < 2; side++)
      backends[side] = std::make_unique<Backend>(nics[side]->host(), with.channels, queue_pairs_max, senders);
    run();
    for (unsigned side = 0; side < 2; side++) make(side, with);
    connect_both();
    std::mt19937_64 random(1);
    for (std::uint8_t& byte : memory[0]) byte = static_cast<std::uint8_t>(random() % 255);  // never 0xFF
    std::ranges::fill(memory[1], 0xFF);
  }
  void make(unsigned side, const QueuePairOptions& with) {
    on(side, [&](nic_model::Host& host) {
      std::string error;
      qps[side] = backends[side]->create(host, with, error);
      EXPECT_EQ(error, "");
      keys[side] = backends[side]->add_memory(memory[side].data(), kBytes, true);
    });
  }
  void connect_both() {
    for (unsigned side = 0; side < 2; side++)
      on(side, [&](nic_model::Host& host) { EXPECT_EQ(qps[side]->connect(host, qps[1 - side]->info()), ""); });
  }
  /// The wire's options from now on.
  void link(const std::string& yaml) {
    Kernel& kernel = devices[2]->kernel(0);
    const std::unique_ptr<Change> change = test::nic_test_options("link", yaml)->change(kernel);
    change->apply(kernel, now);
  }
  std::uint64_t at(unsigned side, std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory[side].data()) + offset;
  }
  Receive* receive(std::size_t offset, std::uint32_t length, Status expected = Status::kSuccess) {
    Receive* made = nullptr;
    on(1, [&](nic_model::Host& host) {
      EXPECT_EQ(qps[1]->post_receive(host, at(1, offset), length, keys[1], made), expected);
    });
    return made;
  }
  void complete(Receive& receive) {
    on(1, [&](nic_model::Host& host) { EXPECT_EQ(qps[1]->complete(host, receive), Status::kSuccess); });
  }
  Send* start(const std::uint32_t* user = nullptr) {
    Send* made = nullptr;
    on(0, [&](nic_model::Host&) { EXPECT_EQ(qps[0]->start_send(user, made), Status::kSuccess); });
    return made;
  }
  void add(Send& send, std::size_t offset, std::uint32_t length, std::uint64_t chunk = 0,
           Status expected = Status::kSuccess) {
    on(0, [&](nic_model::Host& host) {
      EXPECT_EQ(qps[0]->add(host, send, at(0, offset), length, keys[0], chunk), expected);
    });
  }
  void end(Send& send) {
    on(0, [&](nic_model::Host& host) { qps[0]->end_send(host, send); });
  }
  Send* send(std::size_t offset, std::uint32_t length, const std::uint32_t* user = nullptr) {
    Send* made = start(user);
    add(*made, offset, length);
    end(*made);
    return made;
  }
  bool same(std::size_t sent, std::size_t received, std::size_t bytes) const {
    return std::memcmp(&memory[0][sent], &memory[1][received], bytes) == 0;
  }
  bool untouched(std::size_t received, std::size_t bytes) const {
    return std::all_of(&memory[1][received], &memory[1][received] + bytes, [](std::uint8_t b) { return b == 0xFF; });
  }
  std::uint64_t arrivals(unsigned what) const { return qps[1]->arrivals()[what]; }

  static constexpr std::size_t kBytes = 8 << 20;
  std::unique_ptr<Backend> backends[2];
  QueuePair* qps[2] = {};
  std::uint32_t keys[2] = {};
  std::vector<std::uint8_t> memory[2];
};

}  // namespace rocebox::sdr
