// SPDX-License-Identifier: BSD-3-Clause
// What ThreadSanitizer cannot see, in builds with it.
#ifdef __SANITIZE_THREAD__

// DPDK's telemetry guards its list of commands by a spinlock of its own, which is not compiled with the sanitizer.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:rte_telemetry_register_cmd\n"; }

#endif
