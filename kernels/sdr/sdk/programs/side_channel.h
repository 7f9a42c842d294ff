/* SPDX-License-Identifier: BSD-3-Clause */
/* How these programs tell each other of their queue pairs: over TCP, which a NIC in use would have beside it. */
#ifndef SDR_SIDE_CHANNEL_H
#define SDR_SIDE_CHANNEL_H

#include <sdr.h>

/* A connected socket: to `server`, which is tried for ten seconds, or, that being NULL, of the first who comes to
 * `port`. -1 with one line on standard error. */
int side_channel(const char* server, int port);
/* Sends what this side has, and receives as much. 0, or -1. */
int exchange(int channel, const void* own, void* peers, size_t bytes);
/* Tells the peer of `qp`, hears of its queue pair, and connects them; returns when both have. 0, or -1. */
int connect_over(int channel, struct sdr_qp* qp);
/* Nanoseconds of a clock that only goes forward. */
long long now_ns(void);

#endif
