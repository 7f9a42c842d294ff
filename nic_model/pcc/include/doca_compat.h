/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks that DOCA's declarations bear; here they say nothing. */
#ifndef ROCEBOX_DOCA_COMPAT_H
#define ROCEBOX_DOCA_COMPAT_H

#ifndef DOCA_STABLE
#define DOCA_STABLE
#endif
#ifndef DOCA_EXPERIMENTAL
#define DOCA_EXPERIMENTAL
#endif

#endif
