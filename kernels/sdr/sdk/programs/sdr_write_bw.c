/* SPDX-License-Identifier: BSD-3-Clause */
/* sdr_write_bw: messages of one size, as fast as they go, or messages of random sizes whose every byte is compared.
 *
 *     SDR_CONFIG=b.yaml sdr_write_bw -d DEVICE [OPTION...]             receives
 *     SDR_CONFIG=a.yaml sdr_write_bw -d DEVICE [OPTION...] ADDRESS     sends
 *
 * Both ends are given the same options; --help lists them. */
#include <getopt.h>
#include <sdr_reliability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "side_channel.h"

static struct {
  const char *device, *layer;
  unsigned long size, least, messages, depth, channels, chunk_log, mtu_log, data, parity, port, rtt_us, seed;
  int verify;
} o = {.layer = "sr",
       .size = 1 << 20,
       .messages = 1000,
       .depth = 8,
       .channels = 4,
       .chunk_log = 14,
       .mtu_log = 10,
       .data = 16,
       .parity = 4,
       .port = 7472,
       .rtt_us = 1000,
       .seed = 1};

static const char* const kHelp =
    "  -d DEVICE    of the configuration that SDR_CONFIG names\n"
    "  -r LAYER     sr, nack, mds or xor: Selective Repeat without and with NACKs, erasure coding [sr]\n"
    "  -s BYTES     size of a message [1048576]        -m BYTES  random sizes from this one on [-s]\n"
    "  -n COUNT     messages [1000]                    -q COUNT  under way at once [8]\n"
    "  -c COUNT     channels [4]                       -k LOG    bytes of a chunk [14]\n"
    "  -M LOG       bytes of a packet, 6 to 12 [10]    -R US     round-trip time of the path [1000]\n"
    "  -K COUNT     data chunks of a submessage [16]   -P COUNT  its parity chunks [4]\n"
    "  -v           compare every byte                 -p PORT   of the side channel [7472]\n"
    "  -S SEED      of the random sizes [1]\n";

static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
static uint64_t size_of(unsigned long number) {
  return o.least + mix(o.seed * 1000003 + number) % (o.size - o.least + 1);
}
static uint64_t word_of(unsigned long number, uint64_t i) { return mix(number) + i * 0xC2B2AE3D27D4EB4Fu; }
static void fill(uint8_t* to, unsigned long number, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += 8) {
    const uint64_t word = word_of(number, i);
    memcpy(to + i, &word, bytes - i < 8 ? bytes - i : 8);
  }
}
static int is_right(const uint8_t* here, unsigned long number, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += 8) {
    const uint64_t word = word_of(number, i);
    if (memcmp(here + i, &word, bytes - i < 8 ? bytes - i : 8) != 0) return 0;
  }
  return 1;
}

/* Posts and polls all of them. How many were wrong or failed; `bytes` is how much went. */
static unsigned long run(struct sdr_reliable* reliable, uint8_t* memory, uint32_t key, int sends, uint64_t* bytes) {
  struct sdr_transfer** under_way = calloc(o.depth, sizeof *under_way);
  unsigned long posted = 0, ended = 0, wrong = 0;
  while (ended < o.messages) {
    for (; posted < o.messages && posted < ended + o.depth; posted++) {
      uint8_t* place = memory + posted % o.depth * o.size;
      const uint64_t size = size_of(posted);
      if (o.verify && sends) fill(place, posted, size);
      if (o.verify && !sends) memset(place, 0, size);
      const int code = (sends ? sdr_reliable_send : sdr_reliable_recv)(reliable, (uint64_t)(uintptr_t)place, size, key,
                                                                       &under_way[posted % o.depth]);
      if (code != SDR_SUCCESS) return free(under_way), o.messages - ended;
    }
    int completed = 0;
    if (sdr_reliable_poll(under_way[ended % o.depth], &completed) != SDR_SUCCESS)
      return free(under_way), o.messages - ended;
    if (!completed) {
      const struct timespec pause = {0, 20000};
      nanosleep(&pause, NULL);
      continue;
    }
    const uint64_t size = size_of(ended);
    if (o.verify && !sends && !is_right(memory + ended % o.depth * o.size, ended, size)) wrong++;
    *bytes += size;
    ended++;
  }
  free(under_way);
  return wrong;
}

static int options(int count, char** words) {
  for (int c; (c = getopt(count, words, "d:r:s:m:n:q:c:k:M:K:P:p:R:S:vh")) != -1;) {
    unsigned long* const places[128] = {
        ['s'] = &o.size,     ['m'] = &o.least,     ['n'] = &o.messages, ['q'] = &o.depth,
        ['c'] = &o.channels, ['k'] = &o.chunk_log, ['M'] = &o.mtu_log,  ['K'] = &o.data,
        ['P'] = &o.parity,   ['p'] = &o.port,      ['R'] = &o.rtt_us,   ['S'] = &o.seed};
    if (c == 'd')
      o.device = optarg;
    else if (c == 'r')
      o.layer = optarg;
    else if (c == 'v')
      o.verify = 1;
    else if (c > 0 && c < 128 && places[c])
      *places[c] = strtoul(optarg, NULL, 0);
    else
      return 0;
  }
  if (o.least == 0 || o.least > o.size) o.least = o.size;
  return o.device && o.size && o.depth && o.messages && o.mtu_log >= 6 && o.mtu_log <= 12;
}

int main(int count, char** words) {
  if (!options(count, words))
    return fprintf(stderr, "usage: %s -d DEVICE [OPTION...] [ADDRESS]\n%s", words[0], kHelp), 2;
  const char* server = optind < count ? words[optind] : NULL;
  const int coded = !strcmp(o.layer, "mds") || !strcmp(o.layer, "xor");
  struct sdr_dev_attr device = {.num_channels = (uint32_t)o.channels, .log_max_qps = 0};
  struct sdr_qp_attr attr = {.bitmap_chunk_size_log_bytes = (uint32_t)o.chunk_log,
                             .max_in_flight_log_bytes = coded ? 27 : 26,
                             .max_log_num_msgs = coded ? 8 : 6,
                             .mtu = (enum sdr_mtu)(o.mtu_log - 6),
                             .send_enable = server != NULL,
                             .recv_enable = server == NULL};
  struct sdr_reliable_attr reliable_attr = {.kind = coded                      ? SDR_ERASURE_CODING
                                                    : !strcmp(o.layer, "nack") ? SDR_SELECTIVE_REPEAT_NACK
                                                                               : SDR_SELECTIVE_REPEAT,
                                            .rtt_ns = o.rtt_us * 1000,
                                            .alpha = 2,
                                            .beta = 1,
                                            .bandwidth = 1000000000,
                                            .code = strcmp(o.layer, "xor") ? SDR_CODE_MDS : SDR_CODE_XOR,
                                            .data = (uint32_t)o.data,
                                            .parity = (uint32_t)o.parity};
  /* The device comes first: who waits for its peer has its port open already. */
  struct sdr_context* context = sdr_context_create(o.device, &device);
  const int channel = context ? side_channel(server, (int)o.port) : -1;
  struct sdr_qp* qp = channel >= 0 ? sdr_qp_create(context, &attr) : NULL;
  uint8_t* memory = calloc(o.depth, o.size);
  struct sdr_mr* mr = qp && memory ? sdr_mr_reg(context, memory, o.depth * o.size, SDR_ACCESS_REMOTE_WRITE) : NULL;
  struct sdr_reliable* reliable = mr ? sdr_reliable_create(qp, &reliable_attr) : NULL;
  uint32_t key;
  if (!reliable || sdr_mr_lkey_get(mr, &key) != SDR_SUCCESS || connect_over(channel, qp) != 0) return 1;
  uint64_t bytes = 0;
  char done = 0;
  const long long begin = now_ns();
  const unsigned long wrong = run(reliable, memory, key, server != NULL, &bytes);
  const double seconds = (double)(now_ns() - begin) / 1e9;
  exchange(channel, &done, &done, 1); /* the NIC is gone with the process: first the peer must have all */
  printf("%lu messages, %llu bytes, %.3f s, %.3f Gbit/s, %lu wrong\n", o.messages, (unsigned long long)bytes, seconds,
         (double)bytes * 8 / seconds / 1e9, wrong);
  sdr_context_destroy(context);
  free(memory);
  return wrong != 0;
}
