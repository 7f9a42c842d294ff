// SPDX-License-Identifier: BSD-3-Clause
// Descriptors of processes. The header of Debian 12's C library (2.36) forgets that C++ may read it.
#pragma once
extern "C" {
#include <sys/pidfd.h>
}
