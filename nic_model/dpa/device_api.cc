// SPDX-License-Identifier: BSD-3-Clause
// The functions of the device API that are not in its headers: device programs find them in the command when they are
// loaded. Each works on the thread that runs.
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "nic_model/dpa/engine.h"
#include "nic_model/dpa/include/rocebox_dpa.h"
#include "nic_model/host/host.h"

using rocebox::nic_model::dpa::kMessageBytesMax;
using rocebox::nic_model::dpa::Request;
using rocebox::nic_model::dpa::Thread;

namespace {

Thread& self() { return *Thread::current(); }

int print(const char* format, std::va_list arguments) {
  Thread& thread = self();
  const int length = std::vsnprintf(thread.message(), kMessageBytesMax, format, arguments);
  // A line of the stream ends where the message does.
  const std::size_t end = std::strlen(thread.message());
  if (end && thread.message()[end - 1] == '\n') thread.message()[end - 1] = 0;
  thread.ask({.kind = Request::Kind::kPrint});
  return length;
}

}  // namespace

extern "C" {

struct flexio_dev_thread_ctx;
struct flexio_os_thread_ctx;
#define DEVICE_API __attribute__((visibility("default"), used))

DEVICE_API std::uint8_t rocebox_dpa_cqe_owner(const volatile void* cqe) {
  return self().owner_of(static_cast<const volatile mlx5_cqe64*>(cqe));
}
DEVICE_API void rocebox_dpa_fence(int space, int operations) {
  constexpr int kMmio = 4, kWrites = 2;  // __DPA_MMIO, __DPA_W
  if (!Thread::current()) return;        // a program of congestion control, which runs until it is done
  if (space == kMmio && (operations & kWrites)) self().write_window();
  self().fence();
}
DEVICE_API std::uint64_t rocebox_dpa_cycles() { return self().cycles(); }
DEVICE_API std::uint64_t rocebox_dpa_instructions() { return self().cycles(); }
DEVICE_API std::uint64_t rocebox_dpa_nanoseconds() { return self().nanoseconds(); }
DEVICE_API void rocebox_dpa_wait_for_lock(volatile std::uint32_t* locked) {
  self().ask({.kind = Request::Kind::kLock, .lock = locked});
}
DEVICE_API std::uint32_t rocebox_dpa_lock_is_taken() {
  self().give_way();
  return 1;
}
DEVICE_API void rocebox_dpa_ring_send_doorbell(std::uint16_t producer, std::uint32_t queue) {
  self().ask({.kind = Request::Kind::kRing, .number = queue, .value = producer});
}
DEVICE_API void rocebox_dpa_arm_cq(std::uint32_t consumer, std::uint32_t cq) {
  self().ask({.kind = Request::Kind::kArm, .number = cq, .value = consumer});
}
DEVICE_API void rocebox_dpa_zero_cqe(std::uint32_t cq) { self().ask({.kind = Request::Kind::kZeroCqe, .number = cq}); }
DEVICE_API int rocebox_dpa_window_config(int entity, std::uint16_t window, std::uint32_t mkey) {
  return self().process().configure(self(), entity, window, mkey);
}
DEVICE_API int rocebox_dpa_window_mkey(int entity, std::uint32_t mkey) {
  return self().process().set_key(self(), entity, mkey);
}
DEVICE_API int rocebox_dpa_window_pointer(int entity, std::uint64_t host_address, std::uint64_t* device_address) {
  const std::uint8_t* at = self().process().window(self(), entity, host_address, 1, false);
  if (at) *device_address = reinterpret_cast<std::uintptr_t>(at);
  return at ? 0 : 1;
}
DEVICE_API int rocebox_dpa_window_copy(int entity, std::uint64_t host_address, void* device, std::uint32_t bytes,
                                       int to_host) {
  std::uint8_t* at = self().process().window(self(), entity, host_address, bytes, to_host != 0);
  if (!at) return 1;
  std::memcpy(to_host ? at : device, to_host ? device : at, bytes);
  return 0;
}
DEVICE_API int rocebox_dpa_print(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int length = print(format, arguments);
  va_end(arguments);
  return length;
}
DEVICE_API int rocebox_dpa_puts(const char* text) { return rocebox_dpa_print("%s", text); }
DEVICE_API int rocebox_dpa_putchar(int character) { return rocebox_dpa_print("%c", character), character; }

DEVICE_API int flexio_dev_get_thread_ctx(flexio_dev_thread_ctx** context) {
  *context = reinterpret_cast<flexio_dev_thread_ctx*>(&self());
  return 0;
}
DEVICE_API flexio_os_thread_ctx* flexio_os_get_thread_ctx() { return reinterpret_cast<flexio_os_thread_ctx*>(&self()); }
DEVICE_API std::uint32_t flexio_dev_get_thread_id(flexio_dev_thread_ctx*) { return self().id(); }
DEVICE_API std::uint64_t flexio_dev_get_thread_local_storage(flexio_dev_thread_ctx*) { return self().local_storage; }
DEVICE_API const char* flexio_dev_get_current_thread_name() { return self().name().c_str(); }
DEVICE_API void flexio_dev_thread_reschedule() { self().leave(Request::Kind::kReschedule); }
DEVICE_API void flexio_dev_reschedule() { self().leave(Request::Kind::kReschedule); }
DEVICE_API void flexio_dev_thread_retrigger() { self().leave(Request::Kind::kRetrigger); }
DEVICE_API void flexio_dev_thread_finish() { self().leave(Request::Kind::kFinish); }
DEVICE_API void flexio_dev_process_finish() { self().leave(Request::Kind::kProcessFinish); }
DEVICE_API void flexio_dev_finish() { self().leave(Request::Kind::kProcessFinish); }
DEVICE_API void flexio_dev_event_handler_activate(std::uint32_t thread) {
  self().ask({.kind = Request::Kind::kActivate, .number = thread});
}
DEVICE_API int flexio_dev_msg(int, std::uint8_t level, const char* format, ...) {
  if (level == 0) return 0;
  std::va_list arguments;
  va_start(arguments, format);
  const int length = print(format, arguments);
  va_end(arguments);
  return length;
}
DEVICE_API int flexio_dev_puts(flexio_dev_thread_ctx*, char* text) { return rocebox_dpa_print("%s", text); }
DEVICE_API int flexio_dev_outbox_config(flexio_dev_thread_ctx*, std::uint16_t) { return 0; }
DEVICE_API void flexio_dev_outbox_config_fast(flexio_dev_thread_ctx*, std::uint16_t) {}
// An error ends the process: while it runs there is none.
DEVICE_API std::uint64_t flexio_dev_get_errno() { return 0; }
DEVICE_API void flexio_dev_rst_errno() {}
DEVICE_API void flexio_dev_error(std::uint64_t error) { self().fail(error ? error : 1); }
DEVICE_API void print_sim_str(const char* text, int length) {
  length > 0 ? rocebox_dpa_print("%.*s", length, text) : rocebox_dpa_print("%s", text);
}
DEVICE_API void print_sim_hex(std::uint64_t value, int length) {
  if (length > 0 && length < 16) value &= (std::uint64_t{1} << length * 4) - 1;
  rocebox_dpa_print("%#lx", static_cast<unsigned long>(value));
}
DEVICE_API void print_sim_int(std::int64_t value, int) { rocebox_dpa_print("%ld", static_cast<long>(value)); }
DEVICE_API void print_sim_putc(char character) { rocebox_dpa_print("%c", character); }
}
