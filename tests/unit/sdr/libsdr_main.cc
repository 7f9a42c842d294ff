// SPDX-License-Identifier: BSD-3-Clause
// libsdr's C API with the library linked in, for sanitizers: two NICs of one live drive, between them a bump that
// loses, duplicates and reorders, and programs of several threads at both ends.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "kernels/sdr/sdk/handles.h"
#include "kernels/sdr/sdk/include/sdr_reliability.h"

namespace {

constexpr const char* kConfig = R"(
devices:
  left: {nic: {address: 10.98.0.1, prefix_bits: 24, dpa: {heap: 32MiB}}}
  right: {nic: {address: 10.98.0.2, prefix_bits: 24, dpa: {heap: 32MiB}}}
  bump: {path: a <-> link <-> z, kernels: {link: {loss: 1%, reorder: 1%, duplicate: 1%}}}
ports: {left.wire: {ring: one}, bump.a: {ring: one}, bump.z: {ring: two}, right.wire: {ring: two}}
pool: {small: 16384, large: 256, giant: 16}
live: {idle: pause}
)";
constexpr std::size_t kBytes = 1 << 18;
constexpr std::uint32_t kMessage = 1 << 16, kIds = 8;

// Until `done` holds, at most so long that only what never comes fails.
template <class Done>
bool wait_for(Done&& done) {
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(4);
       std::chrono::steady_clock::now() < end; usleep(500))
    if (done()) return true;
  return false;
}

sdr_context* context(const char* device) {
  sdr_dev_attr attr{2, 3};
  return sdr_context_create(device, &attr);
}

sdr_qp* queue_pair(sdr_context* of) {
  sdr_qp_attr attr{12, 19, 3, SDR_MTU_1024, 1, 1, 0};
  return sdr_qp_create(of, &attr);
}

// Two queue pairs that are connected, and memory at both ends.
class Ends {
 public:
  Ends() {
    for (unsigned i = 0; i < 2; i++) {
      contexts[i] = context(i == 0 ? "left" : "right");
      qps[i] = queue_pair(contexts[i]);
      memory[i].resize(kBytes);
      regions[i] = sdr_mr_reg(contexts[i], memory[i].data(), kBytes, SDR_ACCESS_REMOTE_WRITE);
      EXPECT_EQ(sdr_mr_lkey_get(regions[i], &keys[i]), SDR_SUCCESS);
    }
    std::size_t size = 0;
    EXPECT_EQ(sdr_qp_info_size_get(qps[0], &size), SDR_SUCCESS);
    std::vector<std::uint8_t> info(size);
    for (unsigned i = 0; i < 2; i++) {
      EXPECT_EQ(sdr_qp_info_get(qps[1 - i], info.data()), SDR_SUCCESS);
      EXPECT_EQ(sdr_qp_connect(qps[i], info.data()), SDR_SUCCESS);
    }
    std::mt19937_64 random(5);
    for (std::uint8_t& byte : memory[0]) byte = static_cast<std::uint8_t>(random());
  }
  ~Ends() {
    for (sdr_context* one : contexts) EXPECT_EQ(sdr_context_destroy(one), SDR_SUCCESS);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  std::uint64_t at(unsigned end, std::size_t offset) { return reinterpret_cast<std::uint64_t>(&memory[end][offset]); }

  sdr_context* contexts[2] = {};
  sdr_qp* qps[2] = {};
  sdr_mr* regions[2] = {};
  std::uint32_t keys[2] = {};
  std::vector<std::uint8_t> memory[2];
};

// One end's messages, two under way; each is polled to its end.
void move_all(Ends& ends, unsigned end, sdr_reliable* by, const std::vector<std::uint32_t>& lengths) {
  std::vector<sdr_transfer*> under_way;
  for (std::size_t i = 0, over = 0; over < lengths.size();) {
    for (; i < lengths.size() && i < over + 2; i++) {
      const auto post = end == 0 ? sdr_reliable_send : sdr_reliable_recv;
      ASSERT_EQ(post(by, ends.at(end, i % 2 * (kBytes / 2)), lengths[i], ends.keys[end], &under_way.emplace_back()),
                SDR_SUCCESS);
    }
    int completed = 0, code = SDR_ERROR;
    ASSERT_TRUE(
        wait_for([&] { return (code = sdr_reliable_poll(under_way[over], &completed)) != SDR_SUCCESS || completed; }));
    ASSERT_EQ(code, SDR_SUCCESS) << over;
    if (end == 1) {
      const std::size_t from = over % 2 * (kBytes / 2);
      ASSERT_EQ(std::memcmp(&ends.memory[0][from], &ends.memory[1][from], lengths[over]), 0) << over;
      std::memset(&ends.memory[1][from], 0, lengths[over]);
    }
    over++;
  }
}

TEST(Libsdr, ReliableMessagesArriveWhole) {
  for (const bool coding : {false, true}) {
    Ends ends;
    const sdr_reliable_attr attr{.kind = coding ? SDR_ERASURE_CODING : SDR_SELECTIVE_REPEAT_NACK,
                                 .rtt_ns = 5'000'000,
                                 .alpha = 2,
                                 .beta = 1,
                                 .bandwidth = 0,
                                 .timeout_ns = 240'000'000'000,
                                 .poll_ns = 0,
                                 .code = SDR_CODE_XOR,
                                 .data = 8,
                                 .parity = 2};
    sdr_reliable* by[2] = {sdr_reliable_create(ends.qps[0], &attr), sdr_reliable_create(ends.qps[1], &attr)};
    ASSERT_TRUE(by[0] && by[1]);
    std::mt19937_64 random(9);
    std::vector<std::uint32_t> lengths(8);
    for (std::uint32_t& length : lengths) length = 1 + static_cast<std::uint32_t>(random() % (kBytes / 2));
    std::thread sender([&] { move_all(ends, 0, by[0], lengths); });
    move_all(ends, 1, by[1], lengths);
    sender.join();
  }
}

// What is lost is sent again by hand, as the bitmap tells, which another thread reads while it fills.
TEST(Libsdr, ABitmapFillsUnderItsReader) {
  Ends ends;
  sdr_recv_wr wr{kMessage, ends.keys[1], ends.at(1, 0)};
  sdr_recv_handle* receive = nullptr;
  ASSERT_EQ(sdr_recv_post(ends.qps[1], &wr, &receive), SDR_SUCCESS);
  std::uint8_t* bitmap = nullptr;
  std::size_t chunks = 0;
  ASSERT_EQ(sdr_recv_bitmap_get(receive, &bitmap, &chunks), SDR_SUCCESS);
  ASSERT_EQ(chunks, kMessage / 4096);
  std::atomic<bool> whole{false};
  std::thread reader([&] {
    const auto is_here = [&](std::size_t chunk) { return __atomic_load_n(&bitmap[chunk], __ATOMIC_ACQUIRE) == 1; };
    whole = wait_for([&] {
      std::size_t here = 0;
      for (std::size_t i = 0; i < chunks; i++) here += is_here(i);
      std::uint64_t packets = 0;
      EXPECT_EQ(sdr_recv_bitmap_chunk_expand(receive, 3, &packets), SDR_SUCCESS);
      std::uint32_t user = 0;
      return here == chunks && sdr_recv_imm_get(receive, &user) == SDR_SUCCESS && user == 0xC0FFEE;
    });
  });
  sdr_send_start_wr start{SDR_WR_WRITE_WITH_IMM, 0xC0FFEE};
  sdr_send_handle* send = nullptr;
  ASSERT_EQ(sdr_streaming_send_start(ends.qps[0], &start, &send), SDR_SUCCESS);
  EXPECT_TRUE(wait_for([&] {
    for (std::size_t i = 0; i < chunks; i++) {
      sdr_send_continue_wr part{4096, ends.at(0, i * 4096), ends.keys[0], i};
      if (!__atomic_load_n(&bitmap[i], __ATOMIC_ACQUIRE)) {
        EXPECT_NE(sdr_streaming_send_continue(send, &part), SDR_ERROR);
      }
    }
    sdr_send_continue_wr again{4096, ends.at(0, 0), ends.keys[0], 0};  // carries the whole immediate
    EXPECT_NE(sdr_streaming_send_continue(send, &again), SDR_ERROR);
    usleep(5000);
    return whole.load();
  }));
  reader.join();
  ASSERT_EQ(sdr_streaming_send_end(send), SDR_SUCCESS);
  int completed = 0;
  sdr_send_status status{1};
  EXPECT_TRUE(wait_for([&] { return sdr_send_poll(send, &completed, &status) != SDR_SUCCESS || completed; }));
  EXPECT_EQ(status.flags, 0u);
  ASSERT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
  EXPECT_EQ(std::memcmp(ends.memory[0].data(), ends.memory[1].data(), kMessage), 0);
}

TEST(Libsdr, ThreadsCallAtOnce) {
  Ends ends;
  std::atomic<unsigned> completed{0}, posted{0};
  std::array<std::atomic<sdr_recv_handle*>, kIds> shared{};
  std::vector<std::thread> threads;
  std::barrier together(3);
  for (unsigned t = 0; t < 3; t++)
    threads.emplace_back([&] {
      for (unsigned i = 0; i < 10; i++) {  // objects of its own
        std::vector<std::uint8_t> bytes(8192);
        sdr_qp* qp = queue_pair(ends.contexts[1]);
        sdr_mr* region = sdr_mr_reg(ends.contexts[1], bytes.data(), bytes.size(), SDR_ACCESS_REMOTE_WRITE);
        sdr_recv_wr wr{8192, 0, reinterpret_cast<std::uint64_t>(bytes.data())};
        sdr_recv_handle* mine = nullptr;
        EXPECT_EQ(sdr_mr_rkey_get(region, &wr.lkey), SDR_SUCCESS);
        EXPECT_EQ(sdr_recv_post(qp, &wr, &mine), SDR_SUCCESS);
        EXPECT_EQ(sdr_recv_complete(mine), SDR_SUCCESS);
        EXPECT_EQ(sdr_mr_dereg(region), SDR_SUCCESS);
        EXPECT_EQ(sdr_qp_destroy(qp), SDR_SUCCESS);
      }
      sdr_recv_wr wr{5000, ends.keys[1], ends.at(1, 0)};
      for (sdr_recv_handle* handle; sdr_recv_post(ends.qps[1], &wr, &handle) == SDR_SUCCESS;)
        if (const unsigned at = posted++; at < kIds) shared[at] = handle;
      together.arrive_and_wait();  // no ID is left; now all complete all of them
      for (auto& one : shared) completed += sdr_recv_complete(one) == SDR_SUCCESS;
    });
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(posted, kIds);
  EXPECT_EQ(completed, kIds);
}

TEST(Libsdr, MistakesAreErrors) {
  Ends ends;
  sdr_dev_attr attr{2, 1}, none{0, 0};
  EXPECT_EQ(sdr_context_create(nullptr, &attr), nullptr);
  EXPECT_EQ(sdr_context_create("middle", &attr), nullptr);
  EXPECT_EQ(sdr_context_create("left", &none), nullptr);
  sdr_qp_attr small{9, 19, 3, SDR_MTU_1024, 1, 1, 0};
  EXPECT_EQ(sdr_qp_create(ends.contexts[0], &small), nullptr);
  std::vector<std::uint8_t> zeros(4096);
  sdr_qp* alone = queue_pair(ends.contexts[0]);
  EXPECT_EQ(sdr_qp_connect(alone, zeros.data()), SDR_ERROR);
  sdr_send_wr send{SDR_WR_WRITE, 0, 100, ends.keys[0], ends.at(0, 0), 0};
  sdr_send_handle* sent = nullptr;
  EXPECT_EQ(sdr_send_post(alone, &send, &sent), SDR_ERROR);
  for (const sdr_send_wr& bad : {sdr_send_wr{SDR_WR_WRITE, 0, 0, ends.keys[0], ends.at(0, 0), 0},
                                 sdr_send_wr{SDR_WR_WRITE, 0, kMessage + 1, ends.keys[0], ends.at(0, 0), 0},
                                 sdr_send_wr{SDR_WR_WRITE, 0, 100, ends.keys[0] + 1, ends.at(0, 0), 0},
                                 sdr_send_wr{SDR_WR_WRITE, 0, 100, ends.keys[0], ends.at(0, kBytes - 1), 0},
                                 sdr_send_wr{SDR_WR_WRITE, 0, 100, ends.keys[0], ends.at(0, 0), 1 << 20}}) {
    sdr_send_wr wr = bad;
    EXPECT_EQ(sdr_send_post(ends.qps[0], &wr, &sent), SDR_ERROR);
  }
  for (const std::uint64_t value : {0ul, 1ul, 0xDEADBEEFul, ~0ul, reinterpret_cast<std::uint64_t>(ends.qps[0]) + 256}) {
    EXPECT_EQ(sdr_qp_destroy(reinterpret_cast<sdr_qp*>(value)), SDR_ERROR);
    EXPECT_EQ(sdr_recv_complete(reinterpret_cast<sdr_recv_handle*>(value)), SDR_ERROR);
    EXPECT_EQ(sdr_mr_dereg(reinterpret_cast<sdr_mr*>(value)), SDR_ERROR);
  }
  EXPECT_EQ(sdr_qp_destroy(alone), SDR_SUCCESS);
  EXPECT_EQ(sdr_qp_destroy(alone), SDR_ERROR);
}

// Where no handle is left nothing is begun; one that is given back does for one.
TEST(Libsdr, HandlesEnd) {
  using rocebox::libsdr::Handles;
  Ends ends;
  Handles::get().limit(0);
  std::vector<sdr_mr*> all;
  while (sdr_mr* one = sdr_mr_reg(ends.contexts[1], ends.memory[1].data(), 64, SDR_ACCESS_LOCAL)) all.push_back(one);
  sdr_recv_wr wr{5000, ends.keys[1], ends.at(1, 0)};
  sdr_recv_handle* receive = nullptr;
  sdr_send_start_wr start{SDR_WR_WRITE, 0};
  sdr_send_handle* send = nullptr;
  EXPECT_EQ(sdr_recv_post(ends.qps[1], &wr, &receive), SDR_RETRY);
  EXPECT_EQ(sdr_streaming_send_start(ends.qps[0], &start, &send), SDR_RETRY);
  EXPECT_EQ(queue_pair(ends.contexts[1]), nullptr);
  EXPECT_EQ(context("left"), nullptr);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(sdr_mr_dereg(all.back()), SDR_SUCCESS);
  EXPECT_EQ(sdr_recv_post(ends.qps[1], &wr, &receive), SDR_SUCCESS);
  EXPECT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
  Handles::get().limit(Handles::kMost);
  EXPECT_NE(queue_pair(ends.contexts[1]), nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  char file[] = "/tmp/libsdr-XXXXXX";
  const int made = mkstemp(file);
  if (made < 0) return 1;
  close(made);
  std::ofstream(file) << kConfig;
  setenv("SDR_CONFIG", file, 1);
  setenv("SDR_USE_UC_QP", "1", 1);
  if (sdr_context* first = context("left"); !first || sdr_context_destroy(first) != SDR_SUCCESS) return 1;
  const int result = RUN_ALL_TESTS();
  unlink(file);
  return result;
}
