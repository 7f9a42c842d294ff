/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable messages over SDR (4.1): Selective Repeat and erasure coding. The library's own thread runs them; a message
 * is posted at both ends, with the same length, and polled until it is over. Calls are as those of sdr.h. */
#ifndef SDR_RELIABILITY_H
#define SDR_RELIABILITY_H

#include "sdr.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sdr_reliable;
struct sdr_transfer;

enum sdr_reliable_kind { SDR_SELECTIVE_REPEAT = 0, SDR_SELECTIVE_REPEAT_NACK = 1, SDR_ERASURE_CODING = 2 };
enum sdr_code { SDR_CODE_MDS = 0, SDR_CODE_XOR = 1 };

struct sdr_reliable_attr {
  enum sdr_reliable_kind kind;
  uint64_t rtt_ns;       /* of the path */
  double alpha, beta;    /* RTO = RTT + alpha RTT; FTO = injection + beta RTT */
  uint64_t bandwidth;    /* of the path in bit/s, for the FTO; 0: injection takes no time */
  uint64_t timeout_ns;   /* then a message has failed; 0: a minute */
  uint64_t poll_ns;      /* how often bitmaps are looked at; 0: a hundredth of the RTT */
  enum sdr_code code;    /* of erasure coding */
  uint32_t data, parity; /* its chunks of a submessage: k, m */
};

/* Takes over a queue pair that has been created, and may be connected already: it sends and receives nothing else any
 * more. It is gone when the queue pair is destroyed. */
struct sdr_reliable* sdr_reliable_create(struct sdr_qp* qp, const struct sdr_reliable_attr* attr);
/* `addr` must be registered, `length` is at least 1 and may be above that of a message of SDR. */
int sdr_reliable_send(struct sdr_reliable* r, uint64_t addr, uint64_t length, uint32_t lkey, struct sdr_transfer** t);
int sdr_reliable_recv(struct sdr_reliable* r, uint64_t addr, uint64_t length, uint32_t lkey, struct sdr_transfer** t);
/* SDR_SUCCESS with `completed` 1: it is over, all bytes are there (for the sender: the receiver has said so), and the
 * handle is gone; with 0: it is under way. SDR_ERROR: it has failed, and the handle is gone. */
int sdr_reliable_poll(struct sdr_transfer* t, int* completed);

#ifdef __cplusplus
}
#endif
#endif
