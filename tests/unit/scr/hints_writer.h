/* SPDX-License-Identifier: BSD-3-Clause */
/* A writer of hints in C, as rocebox_hints.h is written for, on a system that refuses what a test says. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum rocebox_test_trouble {
  kTestSticky = 1, /* O_CREAT fails for a file that is there: fs.protected_regular */
  kTestFull = 2    /* the file system has no room */
};
/* Opens the file, writes one hint, closes it. 0, or errno. */
int rocebox_test_hint(const char* path, unsigned qpn, unsigned long weight, int trouble);

#ifdef __cplusplus
}
#endif
