/* SPDX-License-Identifier: BSD-3-Clause */
/* SDR: messages over unreliable RDMA Writes, whose receiver sees chunk by chunk what has come (Khalilov et al., SC
 * '25).
 *
 * All calls may be made by any number of threads at once, except that nobody may use an object while another thread
 * destroys it. Calls return SDR_SUCCESS, SDR_ERROR or SDR_RETRY; with an error, one line on standard error says what is
 * wrong. A handle that is none, or is none any more, is an error, whatever its value.
 *
 * A device is a NIC of a configuration of `rocebox run`, by its name there; the environment variable SDR_CONFIG names
 * the file. The library runs it in a thread of its own, from the first context until the process ends. */
#ifndef SDR_H
#define SDR_H

#include <stddef.h>
#include <stdint.h>

#include "sdr_mr.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SDR_SUCCESS = 0, SDR_ERROR = 1, SDR_RETRY = 2 };

struct sdr_qp;
struct sdr_send_handle;
struct sdr_recv_handle;

enum sdr_mtu {
  SDR_MTU_64 = 0,
  SDR_MTU_128 = 1,
  SDR_MTU_256 = 2,
  SDR_MTU_512 = 3,
  SDR_MTU_1024 = 4,
  SDR_MTU_2048 = 5,
  SDR_MTU_4096 = 6
};

enum sdr_wr_opcode { SDR_WR_WRITE = 0, SDR_WR_WRITE_WITH_IMM = 1 };

struct sdr_dev_attr {
  uint32_t num_channels; /* threads of the DPA that receive, and channels of each queue pair */
  uint32_t log_max_qps;  /* queue pairs, a power of two: at most 6 */
};

struct sdr_qp_attr {
  uint32_t bitmap_chunk_size_log_bytes; /* bytes for which a bitmap has one entry: at least the MTU */
  size_t max_in_flight_log_bytes;       /* of all messages under way: one has at most that divided by their number */
  uint32_t max_log_num_msgs;            /* messages under way, at each side */
  enum sdr_mtu mtu;
  uint8_t send_enable, recv_enable;
  uint32_t rate_limit; /* kbit/s; 0: none */
};

struct sdr_send_wr {
  enum sdr_wr_opcode opcode;
  uint32_t imm_value, length, lkey;
  uint64_t local_addr, remote_offset; /* the latter in chunks */
};

struct sdr_send_start_wr {
  enum sdr_wr_opcode opcode;
  uint32_t imm_value;
};

struct sdr_send_continue_wr {
  uint32_t length;
  uint64_t local_addr;
  uint32_t lkey;
  uint64_t remote_offset; /* in chunks */
};

struct sdr_recv_wr {
  uint32_t max_length, lkey;
  uint64_t address;
};

enum { SDR_SEND_FAILED = 1 << 0 }; /* flags of a status: not all of it has left */

struct sdr_send_status {
  uint32_t flags;
};

/* NULL: it cannot be made. */
struct sdr_context* sdr_context_create(const char* dev_name, struct sdr_dev_attr* attr);
/* Its queue pairs and memory are gone, too. */
int sdr_context_destroy(struct sdr_context* ctx);

struct sdr_qp* sdr_qp_create(struct sdr_context* ctx, struct sdr_qp_attr* attr);
/* Its handles are gone, too. */
int sdr_qp_destroy(struct sdr_qp* qp);
/* What the peer must know to be connected, to be carried there by any means. Both must have been made with attributes
 * and an environment that fit. */
int sdr_qp_info_size_get(struct sdr_qp* qp, size_t* size);
int sdr_qp_info_get(struct sdr_qp* qp, void* info);
int sdr_qp_connect(struct sdr_qp* qp, void* remote_qp_info);

/* Messages match those of the peer in the order in which both are posted. A message that is shorter than the buffer
 * leaves the chunks behind it, and a last one that it does not fill, at zero.
 * SDR_RETRY: as many as there can be are posted; complete one. */
int sdr_recv_post(struct sdr_qp* qp, struct sdr_recv_wr* wr, struct sdr_recv_handle** handle);
/* SDR_RETRY: fragments of the immediate are missing. */
int sdr_recv_imm_get(struct sdr_recv_handle* handle, uint32_t* imm);
/* In place: one byte a chunk, `length` bytes, 0 until all of the chunk's packets are here, then 1. To be read while it
 * fills with acquire ordering (__atomic_load_n); valid until sdr_recv_complete(). */
int sdr_recv_bitmap_get(struct sdr_recv_handle* handle, uint8_t** bitmap, size_t* length);
/* Eight chunks a byte, the first in the lowest bit, as ACKs have them; `bits` has (length + 7) / 8 bytes. */
int sdr_recv_bitmap_pack(const uint8_t* bitmap, size_t length, uint8_t* bits);
/* The packets of a chunk, the first in the lowest bit; of chunks of up to 64 packets. */
int sdr_recv_bitmap_chunk_expand(struct sdr_recv_handle* handle, size_t chunk, uint64_t* packets);
/* Whatever comes later touches neither buffer nor bitmap. The handle is gone. */
int sdr_recv_complete(struct sdr_recv_handle* handle);

/* SDR_RETRY: as many as there can be are under way; poll one. What is posted before the peer has posted its buffer
 * waits for it. Memory is the caller's again when the message has completed. */
int sdr_send_post(struct sdr_qp* qp, struct sdr_send_wr* wr, struct sdr_send_handle** handle);
int sdr_streaming_send_start(struct sdr_qp* qp, struct sdr_send_start_wr* wr, struct sdr_send_handle** handle);
int sdr_streaming_send_continue(struct sdr_send_handle* handle, struct sdr_send_continue_wr* wr);
int sdr_streaming_send_end(struct sdr_send_handle* handle);
/* Once it has set `completed` the handle is gone. `status` may be NULL. A streaming one completes after its end. */
int sdr_send_poll(struct sdr_send_handle* handle, int* completed, struct sdr_send_status* status);

#ifdef __cplusplus
}
#endif
#endif
