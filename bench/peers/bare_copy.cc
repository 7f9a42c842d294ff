// SPDX-License-Identifier: BSD-3-Clause
// The yardstick for replay: libpcap reads a capture and libpcap writes it, nothing between.
#include <pcap/pcap.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace {

int fail(const char* what, const char* why) {
  std::fprintf(stderr, "bare_copy: %s: %s\n", what, why);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fail("usage", "bare_copy IN OUT");
  char why[PCAP_ERRBUF_SIZE] = "";
  pcap_t* in = pcap_open_offline_with_tstamp_precision(argv[1], PCAP_TSTAMP_PRECISION_NANO, why);
  if (!in) return fail(argv[1], why);
  pcap_dumper_t* out = pcap_dump_open(in, argv[2]);
  if (!out) return fail(argv[2], pcap_geterr(in));
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  std::uint64_t packets = 0;
  int result;
  while ((result = pcap_next_ex(in, &header, &data)) == 1) {
    pcap_dump(reinterpret_cast<u_char*>(out), header, data);
    packets++;
  }
  if (result != PCAP_ERROR_BREAK) return fail(argv[1], pcap_geterr(in));
  if (pcap_dump_flush(out) != 0) return fail(argv[2], "cannot be written");
  pcap_dump_close(out);
  pcap_close(in);
  std::printf("%" PRIu64 "\n", packets);
}
