// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/fiber.h"

#include <ucontext.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ROCEBOX_DPA_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define ROCEBOX_DPA_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ROCEBOX_DPA_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define ROCEBOX_DPA_TSAN
#endif
#ifdef ROCEBOX_DPA_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef ROCEBOX_DPA_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__x86_64__) && !defined(ROCEBOX_DPA_ASAN) && !defined(ROCEBOX_DPA_TSAN)
#define ROCEBOX_DPA_CALLS  // on the stack of a fiber; elsewhere they are switches
#include <xmmintrin.h>
#endif

namespace rocebox::nic_model::dpa {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

// What is around each switch of stacks.
struct Fiber::Switch {
  static void before_entering([[maybe_unused]] Fiber& f) {
#ifdef ROCEBOX_DPA_ASAN
    __sanitizer_start_switch_fiber(&f.outside_fake_stack_, f.stack_.data(), f.stack_.size());
#endif
#ifdef ROCEBOX_DPA_TSAN
    f.outside_thread_fiber_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f.thread_fiber_, 0);
#endif
  }
  static void after_returning([[maybe_unused]] Fiber& f) {
#ifdef ROCEBOX_DPA_ASAN
    __sanitizer_finish_switch_fiber(f.outside_fake_stack_, nullptr, nullptr);
#endif
  }
  static void on_fiber([[maybe_unused]] Fiber& f) {
#ifdef ROCEBOX_DPA_ASAN
    __sanitizer_finish_switch_fiber(f.fake_stack_, &f.outside_stack_, &f.outside_stack_bytes_);
#endif
  }
  static void before_returning([[maybe_unused]] Fiber& f, [[maybe_unused]] bool for_good) {
#ifdef ROCEBOX_DPA_ASAN
    __sanitizer_start_switch_fiber(for_good ? nullptr : &f.fake_stack_, f.outside_stack_, f.outside_stack_bytes_);
#endif
#ifdef ROCEBOX_DPA_TSAN
    __tsan_switch_to_fiber(f.outside_thread_fiber_, 0);
#endif
  }
  static void run(transfer_t from) {
    Fiber& fiber = *static_cast<Fiber*>(from.data);
    fiber.outside_ = from.fctx;
    on_fiber(fiber);
    fiber.entry_(fiber.argument_);
    fiber.leave();
  }
};

Fiber::Fiber(std::size_t stack_bytes) : stack_(stack_bytes) {
#ifdef ROCEBOX_DPA_TSAN
  thread_fiber_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef ROCEBOX_DPA_TSAN
  __tsan_destroy_fiber(thread_fiber_);
#endif
#ifdef ROCEBOX_DPA_ASAN
  __asan_unpoison_memory_region(stack_.data(), stack_.size());
#endif
}

#ifdef ROCEBOX_DPA_CALLS
namespace {

// What call_on() has put on the caller's stack, the last first.
#define ROCEBOX_DPA_RESTORE "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp"

// Calls `entry` with `argument` on the stack that ends at `top`. `outside` is where the caller's own goes on: written
// before the stack is another, so that whatever interrupts can leave(). Debuggers see through it by the frame pointer.
// noipa: the compiler must not conclude from what it sees here which registers are kept.
__attribute__((naked, noinline, noipa)) bool call_on([[maybe_unused]] void** outside, [[maybe_unused]] void* top,
                                                     [[maybe_unused]] Fiber::Entry entry,
                                                     [[maybe_unused]] void* argument) {
  asm(R"(
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    .cfi_offset %rbx, -24
    .cfi_offset %r12, -32
    .cfi_offset %r13, -40
    .cfi_offset %r14, -48
    .cfi_offset %r15, -56
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    movq %rcx, %rdi
    callq *%rdx
    movl $1, %eax
    leaq -40(%rbp), %rsp
  )" ROCEBOX_DPA_RESTORE R"(
    .cfi_def_cfa %rsp, 8
    retq
  )");
}

// call_on() returns false.
__attribute__((naked, noinline, noreturn)) void leave_to([[maybe_unused]] void* outside) {
  asm(R"(
    movq %rdi, %rsp
    xorl %eax, %eax
  )" ROCEBOX_DPA_RESTORE R"(
    retq
  )");
}

// Rounding and which exceptions fault, of both units: a program may leave others behind.
struct FloatingPoint {
  static constexpr unsigned kFlags = 0x3F;  // what has happened so far
  unsigned vector = _mm_getcsr();
  unsigned short x87 = x87_now();
  static unsigned short x87_now() {
    unsigned short word;
    asm volatile("fnstcw %0" : "=m"(word));
    return word;
  }
  void restore() const {
    if (((_mm_getcsr() ^ vector) & ~kFlags) != 0) [[unlikely]]
      _mm_setcsr(vector);
    if (x87_now() != x87) {
      asm volatile("fldcw %0" : : "m"(x87));
    }
  }
};

}  // namespace

bool Fiber::call(Entry entry, void* argument) {
  const FloatingPoint before;
  is_called_ = true;
  const bool has_returned = call_on(&outside_, stack_.data() + stack_.size(), entry, argument);
  before.restore();
  return has_returned;
}
#else
bool Fiber::call(Entry entry, void* argument) {
  if (!is_called_)
    start(
        [](void* fiber) {
          auto& self = *static_cast<Fiber*>(fiber);
          for (;;) {
            self.called_(self.called_with_);
            self.has_returned_ = true;
            self.pause();
          }
        },
        this);
  is_called_ = true;
  called_ = entry;
  called_with_ = argument;
  has_returned_ = false;
  resume();
  return has_returned_;
}
#endif

void Fiber::start(Entry entry, void* argument) {
  is_called_ = false;
  entry_ = entry;
  argument_ = argument;
#ifdef ROCEBOX_DPA_ASAN
  __asan_unpoison_memory_region(stack_.data(), stack_.size());
  fake_stack_ = nullptr;
#endif
  context_ = make_fcontext(stack_.data() + stack_.size(), stack_.size(), &Switch::run);
}

void Fiber::resume() {
  Switch::before_entering(*this);
  context_ = jump_fcontext(context_, this).fctx;
  Switch::after_returning(*this);
}

void Fiber::pause() {
  Switch::before_returning(*this, false);
  outside_ = jump_fcontext(outside_, nullptr).fctx;
  Switch::on_fiber(*this);
}

void Fiber::leave() {
#ifdef ROCEBOX_DPA_CALLS
  if (is_called_) leave_to(outside_);
#endif
  Switch::before_returning(*this, true);
  jump_fcontext(outside_, nullptr);
  std::abort();  // start() was not called before resume()
}

void Fiber::redirect(void* context, void (*exit)()) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
  // As a call would leave it: 16 bytes aligned before the return address.
  const auto top = reinterpret_cast<std::uintptr_t>(stack_.data() + stack_.size()) - 64;
#if defined(__x86_64__)
  registers.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(exit));
  registers.gregs[REG_RSP] = static_cast<greg_t>(top - 8);
  registers.gregs[REG_EFL] &= ~greg_t{0x400};  // the direction flag, which a function may expect to be clear
#elif defined(__aarch64__)
  registers.pc = reinterpret_cast<std::uintptr_t>(exit);
  registers.sp = top;
#else
#error "say how a signal's context names the instruction and the stack on this processor"
#endif
}

}  // namespace rocebox::nic_model::dpa
