/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks that DOCA's declarations bear; here they say nothing, but for DOCA_USED: what bears it is kept. */
#ifndef ROCEBOX_DOCA_COMPAT_H
#define ROCEBOX_DOCA_COMPAT_H

#ifndef DOCA_USED
#define DOCA_USED __attribute__((used))
#endif
#ifndef DOCA_STABLE
#define DOCA_STABLE
#endif
#ifndef DOCA_EXPERIMENTAL
#define DOCA_EXPERIMENTAL
#endif
#ifndef DOCA_DEPRECATED
#define DOCA_DEPRECATED
#endif

#endif
