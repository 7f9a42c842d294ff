/* SPDX-License-Identifier: BSD-3-Clause */
/* The device API: threads, windows, messages, locks. Names and meaning are those of FlexIO's device library; where
 * signatures changed with SDK 24.10 (the thread's context is passed no more, windows have entities), both are here. */
#ifndef ROCEBOX_FLEXIO_DEV_H
#define ROCEBOX_FLEXIO_DEV_H

#include <libflexio-dev/flexio_dev_ver.h>
#include <stdint.h>

#include "../dpaintrin.h"

#define FLEXIO_DEV_CURRENT_VERSION FLEXIO_DEV_VER(25, 7, 0)
#define FLEXIO_DEV_LAST_SUPPORTED_VERSION FLEXIO_DEV_VER(0, 0, 0)

/* Which signatures: ROCEBOX_DPA_OLD before 24.10, ROCEBOX_DPA_NEW from there on, neither: both. */
#ifdef FLEXIO_DEV_VER_USED
#if FLEXIO_DEV_VER_USED < FLEXIO_DEV_VER(24, 10, 0)
#define ROCEBOX_DPA_OLD
#else
#define ROCEBOX_DPA_NEW
#endif
#elif defined(__cplusplus)
#define ROCEBOX_DPA_NEW
#endif

#define FLEXIO_DEV_STABLE __attribute__((visibility("default"), used))
#define FLEXIO_DEV_EXPERIMENTAL
#ifndef FLEXIO_DEV_ALWAYS_INLINE
#define FLEXIO_DEV_ALWAYS_INLINE static inline __attribute__((always_inline))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t flexio_uintptr_t;
typedef uint32_t flexio_uar_device_id;
typedef uint8_t flexio_msg_dev_level;
struct flexio_dev_thread_ctx;

typedef enum { FLEXIO_DEV_STATUS_SUCCESS = 0, FLEXIO_DEV_STATUS_FAILED = 1 } flexio_dev_status_t;

/* When a work request has a CQE. */
enum cq_ce_mode {
  MLX5_CTRL_SEG_CE_CQE_ON_CQE_ERROR = 0,
  MLX5_CTRL_SEG_CE_CQE_ON_FIRST_CQE_ERROR = 1,
  MLX5_CTRL_SEG_CE_CQE_ALWAYS = 2,
  MLX5_CTRL_SEG_CE_CQE_AND_EQE = 3
};

enum flexio_window_entity {
  FLEXIO_DEV_WINDOW_ENTITY_0 = 0,
  FLEXIO_DEV_WINDOW_ENTITY_1 = 1,
  FLEXIO_DEV_WINDOW_ENTITY_NUM = 2
};

/* Functions that the host names. */
typedef uint64_t(flexio_dev_rpc_handler_t)(uint64_t argument);
typedef void(flexio_dev_async_rpc_handler_t)(uint64_t argument);
typedef uint64_t(flexio_dev_arg_unpack_func_t)(void* arguments, void* function);
typedef void(flexio_dev_event_handler_t)(uint64_t argument);

/* Threads. */

int flexio_dev_get_thread_ctx(struct flexio_dev_thread_ctx** context);
uint32_t flexio_dev_get_thread_id(struct flexio_dev_thread_ctx* context);
flexio_uintptr_t flexio_dev_get_thread_local_storage(struct flexio_dev_thread_ctx* context);
const char* flexio_dev_get_current_thread_name(void);
/* Ends this activation; the next event of the thread's queue begins another. */
void flexio_dev_thread_reschedule(void) __attribute__((noreturn));
void flexio_dev_reschedule(void) __attribute__((noreturn));
/* Ends this activation and begins another at once. */
void flexio_dev_thread_retrigger(void) __attribute__((noreturn));
/* The thread is activated no more. */
void flexio_dev_thread_finish(void) __attribute__((noreturn));
/* No thread of the process is activated any more. */
void flexio_dev_process_finish(void) __attribute__((noreturn));
void flexio_dev_finish(void) __attribute__((noreturn));
/* Activates a thread of the same process by its number. */
void flexio_dev_event_handler_activate(uint32_t activation_id);

/* Messages. */

#define FLEXIO_MSG_DEV_BROADCAST_STREAM 0xff
#define FLEXIO_MSG_DEV_MAX_STREAMS_AMOUNT 255
#define FLEXIO_MSG_DEV_DEFAULT_STREAM_ID 0
#define FLEXIO_MSG_DEV_NO_PRINT 0
#define FLEXIO_MSG_DEV_ALWAYS_PRINT 1
#define FLEXIO_MSG_DEV_ERROR 2
#define FLEXIO_MSG_DEV_WARN 3
#define FLEXIO_MSG_DEV_INFO 4
#define FLEXIO_MSG_DEV_DEBUG 5

int flexio_dev_msg(int stream_id, flexio_msg_dev_level level, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
int flexio_dev_puts(struct flexio_dev_thread_ctx* context, char* text);

#define flexio_dev_msg_err(stream, ...) flexio_dev_msg(stream, FLEXIO_MSG_DEV_ERROR, __VA_ARGS__)
#define flexio_dev_msg_warn(stream, ...) flexio_dev_msg(stream, FLEXIO_MSG_DEV_WARN, __VA_ARGS__)
#define flexio_dev_msg_info(stream, ...) flexio_dev_msg(stream, FLEXIO_MSG_DEV_INFO, __VA_ARGS__)
#define flexio_dev_msg_dbg(stream, ...) flexio_dev_msg(stream, FLEXIO_MSG_DEV_DEBUG, __VA_ARGS__)
#define flexio_dev_msg_dflt(level, ...) flexio_dev_msg(FLEXIO_MSG_DEV_DEFAULT_STREAM_ID, level, __VA_ARGS__)
#define flexio_dev_msg_broadcast(level, ...) flexio_dev_msg(FLEXIO_MSG_DEV_BROADCAST_STREAM, level, __VA_ARGS__)
#define flexio_dev_print(...) flexio_dev_msg(FLEXIO_MSG_DEV_DEFAULT_STREAM_ID, FLEXIO_MSG_DEV_INFO, __VA_ARGS__)

/* Locks. */

struct spinlock_s {
  uint32_t locked;
#ifdef SPINLOCK_DEBUG
  uint32_t locker_tid;
#endif
};

#ifdef SPINLOCK_DEBUG
#define ROCEBOX_DPA_LOCKER(lock, who) ((lock)->locker_tid = (who))
#else
#define ROCEBOX_DPA_LOCKER(lock, who) ((void)0)
#endif
#define spin_init(lock)                                     \
  do {                                                      \
    ROCEBOX_DPA_LOCKER(lock, 0xffffffffu);                  \
    __atomic_store_n(&(lock)->locked, 0, __ATOMIC_SEQ_CST); \
  } while (0)
#define spin_lock(lock)                                                                                           \
  do {                                                                                                            \
    while (__atomic_exchange_n(&(lock)->locked, 1, __ATOMIC_SEQ_CST)) rocebox_dpa_wait_for_lock(&(lock)->locked); \
    ROCEBOX_DPA_LOCKER(lock, flexio_dev_get_thread_id(0));                                                        \
  } while (0)
/* 0: the lock is the caller's now. */
#define spin_trylock(lock) (__atomic_exchange_n(&(lock)->locked, 1, __ATOMIC_SEQ_CST) ? rocebox_dpa_lock_is_taken() : 0)
#define spin_unlock(lock)                                   \
  do {                                                      \
    ROCEBOX_DPA_LOCKER(lock, 0xffffffffu);                  \
    __atomic_store_n(&(lock)->locked, 0, __ATOMIC_SEQ_CST); \
  } while (0)

/* Outbox: which one is the thread's. There is one here, of all queues of the process. */

flexio_dev_status_t flexio_dev_outbox_config(struct flexio_dev_thread_ctx* context, uint16_t outbox_config_id);
void flexio_dev_outbox_config_fast(struct flexio_dev_thread_ctx* context, uint16_t outbox_config_id);

/* Windows: memory of the host under a key. */

FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_multi_window_config(enum flexio_window_entity entity,
                                                                            uint16_t window_config_id, uint32_t mkey) {
  return (flexio_dev_status_t)rocebox_dpa_window_config((int)entity, window_config_id, mkey);
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_multi_window_mkey_config(enum flexio_window_entity entity,
                                                                                 uint32_t mkey) {
  return (flexio_dev_status_t)rocebox_dpa_window_mkey((int)entity, mkey);
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_multi_window_ptr_acquire(enum flexio_window_entity entity,
                                                                                 uint64_t haddr,
                                                                                 flexio_uintptr_t* daddr) {
  return (flexio_dev_status_t)rocebox_dpa_window_pointer((int)entity, haddr, daddr);
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_multi_window_copy_from_host(enum flexio_window_entity entity,
                                                                                    void* daddr, uint64_t haddr,
                                                                                    uint32_t size) {
  return (flexio_dev_status_t)rocebox_dpa_window_copy((int)entity, haddr, daddr, size, 0);
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_multi_window_copy_to_host(enum flexio_window_entity entity,
                                                                                  uint64_t haddr, const void* daddr,
                                                                                  uint32_t size) {
  return (flexio_dev_status_t)rocebox_dpa_window_copy((int)entity, haddr, (void*)(uintptr_t)daddr, size, 1);
}

/* Before 24.10 the first argument is the thread's context, and there is one window. */
#ifdef ROCEBOX_DPA_NEW
#define flexio_dev_window_config flexio_dev_multi_window_config
#define flexio_dev_window_mkey_config flexio_dev_multi_window_mkey_config
#define flexio_dev_window_ptr_acquire flexio_dev_multi_window_ptr_acquire
#define flexio_dev_window_copy_from_host flexio_dev_multi_window_copy_from_host
#define flexio_dev_window_copy_to_host flexio_dev_multi_window_copy_to_host
#else
/* The window's entity: what `first` says, or 0 where it is a context. */
#define ROCEBOX_DPA_ENTITY(first) \
  _Generic((first), struct flexio_dev_thread_ctx * : 0, void* : 0, default : (int)(uintptr_t)(first))
#ifdef ROCEBOX_DPA_OLD
#undef ROCEBOX_DPA_ENTITY
#define ROCEBOX_DPA_ENTITY(first) ((void)sizeof(struct flexio_dev_thread_ctx*){(first)}, 0)
#endif
#define flexio_dev_window_config(first, window_config_id, mkey) \
  ((flexio_dev_status_t)rocebox_dpa_window_config(ROCEBOX_DPA_ENTITY(first), window_config_id, mkey))
#define flexio_dev_window_mkey_config(first, mkey) \
  ((flexio_dev_status_t)rocebox_dpa_window_mkey(ROCEBOX_DPA_ENTITY(first), mkey))
#define flexio_dev_window_ptr_acquire(first, haddr, daddr) \
  ((flexio_dev_status_t)rocebox_dpa_window_pointer(ROCEBOX_DPA_ENTITY(first), haddr, daddr))
#define flexio_dev_window_copy_from_host(first, daddr, haddr, size) \
  ((flexio_dev_status_t)rocebox_dpa_window_copy(ROCEBOX_DPA_ENTITY(first), haddr, daddr, size, 0))
#define flexio_dev_window_copy_to_host(first, haddr, daddr, size) \
  ((flexio_dev_status_t)rocebox_dpa_window_copy(ROCEBOX_DPA_ENTITY(first), haddr, (void*)(uintptr_t)(daddr), size, 1))
#endif

/* Copies of aligned memory; `bytes` is a multiple of the size. */
FLEXIO_DEV_ALWAYS_INLINE void flexio_dev_memcpy16(uint16_t* to, const uint16_t* from, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes / sizeof *to; i++) to[i] = from[i];
}
FLEXIO_DEV_ALWAYS_INLINE void flexio_dev_memcpy32(uint32_t* to, const uint32_t* from, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes / sizeof *to; i++) to[i] = from[i];
}
FLEXIO_DEV_ALWAYS_INLINE void flexio_dev_memcpy64(uint64_t* to, const uint64_t* from, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes / sizeof *to; i++) to[i] = from[i];
}

#ifdef __cplusplus
}
#endif
#endif
