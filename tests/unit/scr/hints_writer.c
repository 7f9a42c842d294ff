/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/scr/hints_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static _Thread_local int trouble_now;

static int open_here(const char* path, int how, mode_t mode) {
  if (trouble_now == kTestSticky && (how & O_CREAT) && access(path, F_OK) == 0 && !(how & O_EXCL)) {
    errno = EACCES;
    return -1;
  }
  return open(path, how, mode);
}
static int fallocate_here(int file, off_t from, off_t bytes) {
  return trouble_now == kTestFull ? ENOSPC : posix_fallocate(file, from, bytes);
}

/* The header's own calls go through these. */
#define OPEN(path, how, mode, ...) open_here(path, how, mode)
#define open(...) OPEN(__VA_ARGS__, 0, 0)
#define posix_fallocate fallocate_here
#include "kernels/scr/include/rocebox_hints.h"

int rocebox_test_hint(const char* path, unsigned qpn, unsigned long weight, int trouble) {
  trouble_now = trouble;
  struct rocebox_hints* hints = rocebox_hints_open(path, 0);
  if (!hints) return errno;
  const int why = rocebox_hint(hints, qpn, weight);
  rocebox_hints_close(hints);
  return why;
}
