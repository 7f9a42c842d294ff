// SPDX-License-Identifier: BSD-3-Clause
// A folder of its own for the files of a test, and captures as bytes.
#pragma once
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/capture/capture_reader.h"
#include "runtime/capture/capture_writer.h"
#include "runtime/packet/pool.h"

namespace rocebox::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/rocebox_test_XXXXXX";
    if (!mkdtemp(name)) std::abort();
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::string path_;
};

inline std::string read_bytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

struct Record {
  Nanos at;
  std::vector<std::uint8_t> bytes;
  std::uint32_t wire_bytes;
  bool operator==(const Record&) const = default;
};

inline void write_record(CaptureWriter& writer, Pool& pool, const Record& record, unsigned interface = 0,
                         std::string_view comment = {}) {
  PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(record.bytes.size()));
  if (!record.bytes.empty()) std::memcpy(packet->data(), record.bytes.data(), record.bytes.size());
  packet->meta().wire_bytes = record.wire_bytes;
  writer.write(interface, record.at, *packet, comment);
}

struct Contents {
  std::vector<Record> records;
  CaptureReader::Status end;
};
inline Contents read_capture(const std::string& path) {
  CaptureReader reader(path);
  Contents contents{};
  for (CaptureRecord record; (contents.end = reader.next(record)) == CaptureReader::Status::kPacket;)
    contents.records.push_back({record.at, {record.bytes.begin(), record.bytes.end()}, record.wire_bytes});
  return contents;
}

}  // namespace rocebox::test
