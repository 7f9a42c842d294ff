/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of SDR: what messages are sent from and received into. */
#ifndef SDR_MR_H
#define SDR_MR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sdr_context;
struct sdr_mr;

enum sdr_access_flags {
  SDR_ACCESS_LOCAL = 0,            /* messages are sent from it */
  SDR_ACCESS_REMOTE_WRITE = 1 << 0 /* and received into it */
};

/* Registers `length` bytes from `addr` on, which stay the caller's and must be there until sdr_mr_dereg(). NULL: they
 * cannot be; one line on standard error says why. */
struct sdr_mr* sdr_mr_reg(struct sdr_context* ctx, void* addr, size_t length, enum sdr_access_flags flags);
/* What is still under way from or to it fails; what comes is dropped. */
int sdr_mr_dereg(struct sdr_mr* mr);
int sdr_mr_lkey_get(struct sdr_mr* mr, uint32_t* lkey);
int sdr_mr_rkey_get(struct sdr_mr* mr, uint32_t* rkey);

#ifdef __cplusplus
}
#endif
#endif
