/* SPDX-License-Identifier: BSD-3-Clause */
/* Which DOCA this is: programs choose between interfaces by it. Names of later versions are here, too, where the README
 * says so; doca_version_runtime(), the host library's, is not. */
#ifndef ROCEBOX_DOCA_VERSION_H
#define ROCEBOX_DOCA_VERSION_H

#include <doca_compat.h>
#include <stddef.h>

#define DOCA_VERSION_MAJOR 3
#define DOCA_VERSION_MINOR 0
#define DOCA_VERSION_PATCH 0
#define DOCA_VERSION_STRING "3.0.0"

/* Numbers that compare as versions do: of a build, and of a release, whose last part counts in thousands. */
#define DOCA_VERSION_CALC_EXACT(major, minor, patch) ((size_t)(major) << 24 | (size_t)(minor) << 16 | (size_t)(patch))
#define DOCA_VERSION_CALC(major, minor, patch) DOCA_VERSION_CALC_EXACT(major, minor, (size_t)(patch)*1000)
#define DOCA_VERSION_EXACT DOCA_VERSION_CALC_EXACT(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR, DOCA_VERSION_PATCH)
#define DOCA_VERSION_OFFICIAL DOCA_VERSION_CALC(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR, DOCA_VERSION_PATCH)
/* Whether a release is this one; whether it is this one or came before. */
#define DOCA_VERSION_EQ_CURRENT(major, minor, patch) (DOCA_VERSION_CALC(major, minor, patch) == DOCA_VERSION_OFFICIAL)
#define DOCA_VERSION_LTE_CURRENT(major, minor, patch) (DOCA_VERSION_CALC(major, minor, patch) <= DOCA_VERSION_OFFICIAL)

#ifdef __cplusplus
extern "C" {
#endif

static inline const char* doca_version(void) { return DOCA_VERSION_STRING; }

#ifdef __cplusplus
}
#endif
#endif
