// SPDX-License-Identifier: BSD-3-Clause
// What the handles of the C API stand for, and what all of its calls do.
#pragma once
#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/sdr/reliability/reliable_queue_pair.h"
#include "kernels/sdr/sdk/device.h"
#include "kernels/sdr/sdk/handles.h"
#include "kernels/sdr/sdk/include/sdr_reliability.h"

namespace rocebox::libsdr {

/// What the environment says of queue pairs.
struct Environment {
  std::uint32_t generations = 4, send_batch = 16, entries_factor = 1, root_keys = 0;  ///< root_keys 0: as generations
  bool unreliable = false, rnr_retry = true, reports = false, reports_sent = false;
  std::uint32_t senders = 0;  ///< transmit workers on the DPA; 0: the host posts
  /// Throws ConfigError: a variable has no such value.
  static Environment read();
};

struct Context {
  Device* device = nullptr;
  sdr::Backend* backend = nullptr;
  Environment environment;
  std::uint32_t channels = 0, queue_pairs_max = 0;
  std::vector<Handles::Value> queue_pairs, memory;  // of the NIC's core alone
};

struct QueuePair {
  Context* context = nullptr;
  sdr::QueuePair* core = nullptr;
  bool sends = false, receives = false;
  std::vector<Handles::Value> handles;  // of the NIC's core alone; some are gone already
  std::size_t swept_at = 0;             // how many `handles` may be until those that are gone leave it
  std::atomic<Handles::Value> reliable{0};
};

struct Memory {
  Context* context = nullptr;
  std::uint32_t key = 0;
};

struct ReceiveHandle {
  QueuePair* qp = nullptr;
  sdr::Receive* core = nullptr;
  std::uint8_t* bitmap = nullptr;
  std::uint32_t chunks = 0;
};

struct SendHandle {
  QueuePair* qp = nullptr;
  sdr::Send* core = nullptr;
  bool streams = false;
};

struct Reliable {
  QueuePair* qp = nullptr;
  // Kept until the process ends: its timers are the backend's.
  std::unique_ptr<sdr::ReliableQueuePair> core;
};

struct Transfer : sdr::Transfer {
  QueuePair* qp = nullptr;
  std::atomic<int> over{0};  // 1: it is; 2: with an error
};

template <class T>
T* find(HandleKind kind, const void* handle) {
  return static_cast<T*>(Handles::get().find(kind, reinterpret_cast<Handles::Value>(handle)));
}

/// Gives an object out.
template <class Out>
Out* give(Handles::Value value) {
  return reinterpret_cast<Out*>(value);
}

inline constexpr const char* kNoHandles = "there are as many handles as there can be";

/// One line on standard error; SDR_ERROR.
int fail(std::string_view call, std::string_view why);

/// `body()` with nothing thrown through the C API; it returns a code.
template <class Body>
int guarded(std::string_view call, Body&& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return fail(call, error.what());
  }
}

/// The code of a status; an error says `why`.
int code_of(sdr::Status status, std::string_view call, std::string_view why);

/// Notes a handle that goes with the queue pair. Those that are removed meanwhile leave the list now and then, so that
/// each costs a constant. In calls of the NIC.
void note_handle(QueuePair& qp, Handles::Value value);
/// Whether it has handles that are not removed. In calls of the NIC.
bool has_handles(QueuePair& qp);

/// A queue pair and all its handles are gone. In calls of the NIC.
void destroy(nic_model::Host& host, QueuePair& qp);

}  // namespace rocebox::libsdr
