/* SPDX-License-Identifier: BSD-3-Clause */
/* rocebox-hints: writes what queue pairs are worth into a file of hints, or lists what stands there. */
#include <rocebox_hints.h>
#include <stdio.h>
#include <stdlib.h>

static int usage(void) {
  fputs(
      "usage: rocebox-hints FILE             list what stands in it\n"
      "       rocebox-hints FILE QPN=WEIGHT ...\n"
      "FILE is made where there is none. WEIGHT: 0 (the flow has ended) to 65535; a flow without a hint has 1.\n"
      "An emulated NIC reads it: scr_control: {hints_file: FILE}\n",
      stderr);
  return 2;
}

static int list(const struct rocebox_hints* hints) {
  for (uint32_t i = 0; i < hints->rows; i++) {
    const struct rocebox_hint_row row = hints->row[i];
    if (row.sequence == 0) continue;
    const int whole = row.sequence % 2 == 0 && row.check == rocebox_hint_check(row.sequence, row.qpn, row.weight);
    if (whole)
      printf("%u=%llu\n", row.qpn, (unsigned long long)row.weight);
    else
      printf("%u is half written\n", row.qpn);
  }
  return fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return usage();
  /* All are read before anything is written. */
  uint32_t numbers[ROCEBOX_HINTS_ROWS_MAX], weights[ROCEBOX_HINTS_ROWS_MAX];
  const int count = argc - 2;
  if (count > (int)ROCEBOX_HINTS_ROWS_MAX) return usage();
  for (int i = 0; i < count; i++) {
    char* end;
    const unsigned long qpn = strtoul(argv[i + 2], &end, 0);
    if (*end != '=' || end == argv[i + 2] || qpn == 0 || qpn > 0xFFFFFF) return usage();
    const char* word = end + 1;
    const unsigned long weight = strtoul(word, &end, 10);
    if (*end || end == word || weight > 65535) return usage();
    numbers[i] = (uint32_t)qpn;
    weights[i] = (uint32_t)weight;
  }
  struct rocebox_hints* hints = rocebox_hints_open(argv[1], 0);
  if (!hints) {
    fprintf(stderr, "rocebox-hints: %s: %s\n", argv[1], errno == EINVAL ? "is no file of hints" : strerror(errno));
    return 1;
  }
  if (count == 0) return list(hints);
  for (int i = 0; i < count; i++) {
    const int why = rocebox_hint(hints, numbers[i], weights[i]);
    if (why == 0) continue;
    fprintf(stderr, "rocebox-hints: queue pair %u: %s\n", numbers[i], why == ENOSPC ? "all rows are others'" : strerror(why));
    return 1;
  }
  rocebox_hints_close(hints);
  return 0;
}
