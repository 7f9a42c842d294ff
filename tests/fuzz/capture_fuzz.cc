// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a capture file: read to the end by CaptureReader and, merged with itself, by ReplayInput.
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

#include "runtime/capture/capture_reader.h"
#include "runtime/drives/replay_input.h"
#include "runtime/kernel/kernel.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace rocebox;
using fuzz::require;

std::uint64_t sum_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t sum = 0;
  for (std::uint8_t byte : bytes) sum += byte;  // touches every byte
  return sum;
}

std::uint64_t read_alone(const std::string& path) {
  CaptureReader reader(path);
  CaptureRecord record;
  while (true) {
    switch (reader.next(record)) {
      case CaptureReader::Status::kPacket:
        require(record.bytes.size() <= record.wire_bytes, "no more is held than was on the wire");
        (void)sum_of(record.bytes);
        continue;
      case CaptureReader::Status::kBroken:
        require(!reader.error().empty(), "a broken record has a reason");
        return reader.records();
      default:
        return reader.records();
    }
  }
}

std::uint64_t read_merged(const std::string& path) {
  const std::vector<config::CaptureBinding> bindings = {{{"d", "a"}, {path}, "udp dst port 4791", ""},
                                                        {{"d", "b"}, {path}, "", ""}};
  ReplayInput input(bindings, [](const config::PortName& name) {
    return FabricPort{0, name.port == "a" ? Port{0} : Port{1}};
  });
  input.open();
  CaptureRecord record;
  FabricPort to{};
  Nanos latest = INT64_MIN;
  std::uint64_t records = 0;
  for (; input.next(record, to); records++) {
    require(record.at >= latest, "time never goes back");
    require(record.bytes.size() <= kPacketBytesMax, "a record fits into a packet");
    latest = record.at;
    (void)sum_of(record.bytes);
  }
  Json report;
  input.report(report);
  (void)report.dump();
  return records;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("capture", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  require(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == static_cast<ssize_t>(size),
          "the memory file is written");
  std::uint64_t alone = 0;
  try {
    alone = read_alone(path);
    require(read_merged(path) == alone, "both read the same number of records");
  } catch (const ConfigError&) {
  } catch (const std::runtime_error&) {
  }
  return 0;
}
