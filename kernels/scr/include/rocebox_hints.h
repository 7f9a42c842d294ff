/* SPDX-License-Identifier: BSD-3-Clause */
/* Application hints: what programs of a machine say of their queue pairs to the policy of an emulated NIC (SCR, 4.3.1):
 * a file that they map and write by plain stores, without a call of the system; `scr_control: {hints_file: FILE}` reads
 * it.
 *
 *   struct rocebox_hints* hints = rocebox_hints_open("/dev/shm/nic0.hints", 0);   0 rows: ROCEBOX_HINTS_ROWS
 *   if (!hints) perror("hints");
 *   rocebox_hint(hints, qp->qp_num, 4);      four times the share of a flow without a hint
 *   rocebox_hint(hints, qp->qp_num, 0);      it has ended
 *   rocebox_hints_close(hints);
 *
 * The file: numbers in the machine's own order of bytes, places in bytes.
 *
 *   header   0  8  "RBHINTS" and a zero, written last when a file is made: before, it is none
 *            8  4  version: 1
 *           12  4  rows: 1 to ROCEBOX_HINTS_ROWS_MAX
 *           16  4  changes: one more after each hint, round at 2^32; a reader looks at rows only when it has changed
 *           20 44  zeros
 *   rows    64 32  each:
 *            0  4  sequence: odd while the row is written; two more with each hint
 *            4  4  number of the queue pair, 24 bits; 0: nobody has the row
 *            8  8  weight, 0 to 65535
 *           16  8  zeros
 *           24  8  check: rocebox_hint_check() of sequence, queue pair and weight
 *
 * Any number of processes and threads may write, each its own queue pairs; two must not write one queue pair at a time.
 * A writer that dies within a row leaves it torn, until its queue pair is written again. Rows are never given back: a
 * file has one for each queue pair that ever had a hint. */
#ifndef ROCEBOX_HINTS_H
#define ROCEBOX_HINTS_H

#include <stdint.h>

#define ROCEBOX_HINTS_MAGIC "RBHINTS"
#define ROCEBOX_HINTS_VERSION 1u
#define ROCEBOX_HINTS_ROWS 256u
#define ROCEBOX_HINTS_ROWS_MAX 1024u

struct rocebox_hint_row {
  uint32_t sequence, qpn;
  uint64_t weight, zero, check;
};
struct rocebox_hints {
  char magic[8];
  uint32_t version, rows, changes, zeros[11];
#ifndef __cplusplus
  struct rocebox_hint_row row[];
#endif
};

/* Not against malice: who may write the file may write what he likes. */
static inline uint64_t rocebox_hint_check(uint32_t sequence, uint32_t qpn, uint64_t weight) {
  uint64_t mix = ((uint64_t)sequence << 32 | qpn) ^ UINT64_C(0x9E3779B97F4A7C15);
  mix = (mix ^ mix >> 30) * UINT64_C(0xBF58476D1CE4E5B9) ^ weight;
  mix = (mix ^ mix >> 27) * UINT64_C(0x94D049BB133111EB);
  return mix ^ mix >> 31;
}

#ifndef __cplusplus /* for writers, which are C */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static inline size_t rocebox_hints_bytes(uint32_t rows) {
  return sizeof(struct rocebox_hints) + rows * sizeof(struct rocebox_hint_row);
}

/* One that is there is opened without O_CREAT, which Linux refuses in a sticky directory such as /dev/shm when the file
 * is another user's (fs.protected_regular). */
static inline int rocebox_hints_file(const char* path) {
  for (;;) {
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0 || errno != ENOENT) return file;
    file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0660);
    if (file >= 0 || errno != EEXIST) return file;
  }
}

static inline int rocebox_hints_is_whole(const struct rocebox_hints* hints, size_t bytes) {
  return memcmp(hints->magic, ROCEBOX_HINTS_MAGIC, sizeof hints->magic) == 0 &&
         hints->version == ROCEBOX_HINTS_VERSION && hints->rows != 0 && hints->rows <= ROCEBOX_HINTS_ROWS_MAX &&
         rocebox_hints_bytes(hints->rows) == bytes;
}

/* Of a file that nobody else opens meanwhile. One of zeros is begun: who made it has died. */
static inline struct rocebox_hints* rocebox_hints_map(int file, uint32_t rows) {
  static const char nothing[sizeof(struct rocebox_hints)];
  struct rocebox_hints* hints;
  struct stat about;
  size_t bytes;
  int why;
  if (fstat(file, &about) < 0) return 0;
  bytes = about.st_size ? (size_t)about.st_size : rocebox_hints_bytes(rows);
  if (!S_ISREG(about.st_mode) || bytes < rocebox_hints_bytes(1) ||
      bytes > rocebox_hints_bytes(ROCEBOX_HINTS_ROWS_MAX)) {
    errno = EINVAL;
    return 0;
  }
  /* Room for all of it now: a write to a page for which a full file system has none would be a SIGBUS. */
  do why = posix_fallocate(file, 0, (off_t)bytes);
  while (why == EINTR);
  if (why) {
    if (about.st_size == 0 && ftruncate(file, 0) < 0) why = errno;
    errno = why;
    return 0;
  }
  hints = (struct rocebox_hints*)mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (hints == MAP_FAILED) return 0;
  if (memcmp(hints, nothing, sizeof nothing) == 0) {
    hints->version = ROCEBOX_HINTS_VERSION;
    hints->rows = (uint32_t)((bytes - sizeof *hints) / sizeof hints->row[0]);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(hints->magic, ROCEBOX_HINTS_MAGIC, sizeof hints->magic);
  }
  if (rocebox_hints_is_whole(hints, bytes)) return hints;
  munmap(hints, bytes);
  errno = EINVAL;
  return 0;
}

/* Maps the file, and makes it with `rows` where there is none or an empty one. Any number of threads and processes may
 * do so at once. Null: errno says why; EINVAL: it is no file of hints; ENOSPC: there is no room for it. */
static inline struct rocebox_hints* rocebox_hints_open(const char* path, uint32_t rows) {
  struct rocebox_hints* hints = 0;
  int file, why;
  if (rows == 0) rows = ROCEBOX_HINTS_ROWS;
  if (rows > ROCEBOX_HINTS_ROWS_MAX) rows = ROCEBOX_HINTS_ROWS_MAX;
  file = rocebox_hints_file(path);
  if (file < 0) return 0;
  do why = flock(file, LOCK_EX); /* of this opening, so that threads of one process wait for each other, too */
  while (why < 0 && errno == EINTR);
  if (why == 0) hints = rocebox_hints_map(file, rows);
  why = errno;
  close(file); /* the lock goes with it */
  if (!hints) errno = why;
  return hints;
}

static inline void rocebox_hints_close(struct rocebox_hints* hints) { munmap(hints, rocebox_hints_bytes(hints->rows)); }

/* What the queue pair is worth from now on. 0, or ENOSPC: all rows are others'; EINVAL: no such number or weight. */
static inline int rocebox_hint(struct rocebox_hints* hints, uint32_t qpn, uint64_t weight) {
  struct rocebox_hint_row* row = 0;
  uint32_t i, sequence;
  if (qpn == 0 || qpn > 0xFFFFFF || weight > 65535) return EINVAL;
  for (i = 0; i < hints->rows && !row; i++) {
    uint32_t nobody = 0;
    const uint32_t whose = __atomic_load_n(&hints->row[i].qpn, __ATOMIC_RELAXED);
    if (whose == qpn || (whose == 0 && (__atomic_compare_exchange_n(&hints->row[i].qpn, &nobody, qpn, 0,
                                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
                                        nobody == qpn)))
      row = &hints->row[i];
  }
  if (!row) return ENOSPC;
  sequence = (__atomic_load_n(&row->sequence, __ATOMIC_RELAXED) | 1u) + (row->sequence & 1u ? 2u : 0u);
  __atomic_store_n(&row->sequence, sequence, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  __atomic_store_n(&row->weight, weight, __ATOMIC_RELAXED);
  __atomic_store_n(&row->zero, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&row->check, rocebox_hint_check(sequence + 1, qpn, weight), __ATOMIC_RELAXED);
  __atomic_store_n(&row->sequence, sequence + 1, __ATOMIC_RELEASE);
  __atomic_fetch_add(&hints->changes, 1, __ATOMIC_RELEASE);
  return 0;
}

#endif
#endif
