// SPDX-License-Identifier: BSD-3-Clause
// Captures that gzip and zstd have packed, whole, cut anywhere and broken anywhere.
#include "runtime/capture/unpacker.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <random>

#include "runtime/capture/capture_reader.h"
#include "runtime/kernel/kernel.h"
#include "tests/unit/capture/capture_kit.h"

namespace rocebox {
namespace {

std::string gzip(const std::string& plain) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, plain.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}
std::string zstd(const std::string& plain) {
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3);
  packed.resize(size);
  return packed;
}

struct Unpacked {
  std::string text, error;
  bool cut, ignored_rest;
};
// Reads `packed`, which comes in pieces of `in` bytes, in pieces of `out` bytes.
Unpacked unpack(const std::string& packed, std::size_t in, std::size_t out) {
  std::size_t at = 0;
  Unpacker unpacker([&](char* buffer, std::size_t size) {
    const std::size_t count = std::min({size, in, packed.size() - at});
    std::memcpy(buffer, packed.data() + at, count);
    at += count;
    return static_cast<long>(count);
  });
  Unpacked result{};
  std::vector<char> buffer(out);
  long count = 0;
  while ((count = unpacker.read(buffer.data(), out)) > 0)
    result.text.append(buffer.data(), static_cast<std::size_t>(count));
  result.error = unpacker.error();
  result.cut = unpacker.cut();
  result.ignored_rest = unpacker.ignored_rest();
  EXPECT_EQ(count < 0, !result.error.empty());
  return result;
}

std::string random_text(std::size_t size) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>("abcdefgh"[random() % 8]);
  return text;
}

TEST(Unpacker, AnyPiecesGiveTheSame) {
  const std::string text = random_text(3000);
  for (const std::string& packed : {text, gzip(text), zstd(text)})
    for (const std::size_t in : {1, 7, 100000})
      for (const std::size_t out : {1, 33, 100000}) {
        const Unpacked result = unpack(packed, in, out);
        EXPECT_EQ(result.text, text) << in << ' ' << out;
        EXPECT_EQ(result.error, "");
        EXPECT_FALSE(result.cut);
      }
}

TEST(Unpacker, SeveralBehindOneAnotherAreOne) {
  const std::string one = random_text(500), two = random_text(900), big = random_text(2'000'000);
  EXPECT_EQ(unpack(gzip(one) + gzip("") + gzip(two), 11, 77).text, one + two);
  EXPECT_EQ(unpack(zstd(one) + zstd("") + zstd(two), 11, 77).text, one + two);
  EXPECT_EQ(unpack(gzip(big), 4096, 65536).text, big);
  EXPECT_EQ(unpack(zstd(big), 4096, 65536).text, big);
}

// What must be skipped, as RFC 8878 says: `letter` is any of 16.
std::string skippable(char letter, const std::string& data) {
  return std::string{letter, '\x2a', '\x4d', '\x18', static_cast<char>(data.size()), '\0', '\0', '\0'} + data;
}

TEST(Unpacker, FramesOfZstdThatAreToBeSkipped) {
  const std::string one = random_text(500), two = random_text(900);
  for (const std::size_t in : {1, 11, 100000}) {
    const Unpacked result = unpack(
        skippable('\x50', "abcd") + zstd(one) + skippable('\x5f', "") + zstd(two) + skippable('\x57', "x"), in, 77);
    EXPECT_EQ(result.text, one + two) << "pzstd puts one before each frame";
    EXPECT_EQ(result.error, "");
    EXPECT_FALSE(result.cut || result.ignored_rest);
  }
  EXPECT_TRUE(unpack(zstd(one) + skippable('\x50', "abcd").substr(0, 10), 11, 77).cut);
}

TEST(Unpacker, WhatIsNotPackedBehindItIsIgnored) {
  const std::string one = random_text(500), two = random_text(900), zeros(1000, '\0');
  for (const auto& pack : {gzip, zstd})
    for (const std::size_t in : {1, 11, 100000})
      for (const auto& [rest, told] :
           std::initializer_list<std::pair<std::string, bool>>{{std::string(1, '\0'), false},  // as a tape leaves it
                                                               {zeros, false},
                                                               {zeros + pack(two), false},
                                                               {"e", true},
                                                               {"elsewhere", true},
                                                               {zeros + "else", true},
                                                               {zeros + "elsewhere" + pack(two), true}}) {
        const Unpacked result = unpack(pack(one) + rest, in, 77);
        EXPECT_EQ(result.text, rest == zeros + pack(two) ? one + two : one);
        EXPECT_EQ(result.error, "");
        EXPECT_FALSE(result.cut);
        EXPECT_EQ(result.ignored_rest, told) << rest.size();
      }
}

TEST(Unpacker, ACutBehindTheFirstPartIsACutToo) {
  const std::string one = random_text(500), two = random_text(900);
  for (const auto& pack : {gzip, zstd}) {
    const std::string first = pack(one), packed = first + pack(two);
    for (std::size_t size = first.size() + 1; size < packed.size(); size++) {
      const Unpacked result = unpack(packed.substr(0, size), 50, 50);
      EXPECT_TRUE(result.cut) << size - first.size();
      EXPECT_EQ(result.error, "");
      EXPECT_FALSE(result.ignored_rest);
      EXPECT_TRUE(result.text.starts_with(one));
    }
  }
}

TEST(Unpacker, WhatIsCutIsReadUpToThere) {
  const std::string text = random_text(700);
  for (const std::string& packed : {gzip(text), zstd(text)})
    for (std::size_t size = 4; size < packed.size(); size++) {
      const Unpacked result = unpack(packed.substr(0, size), 50, 50);
      EXPECT_TRUE(result.cut) << size;
      EXPECT_EQ(result.error, "");
      EXPECT_TRUE(text.starts_with(result.text));
    }
  EXPECT_EQ(unpack("", 1, 1).text, "");
  EXPECT_EQ(unpack("\x1f", 1, 1).text, "\x1f") << "too short for anything but itself";
}

TEST(Unpacker, ABrokenByteIsNoticed) {
  const std::string text = random_text(700), packed = gzip(text);
  for (std::size_t at = 10; at < packed.size(); at++) {  // behind the header, whose fields may differ
    std::string broken = packed;
    broken[at] = static_cast<char>(broken[at] ^ 0x55);
    const Unpacked result = unpack(broken, 50, 50);
    EXPECT_TRUE(!result.error.empty() || result.cut) << at;
  }
}

class PackedCapture : public testing::Test {
 protected:
  PackedCapture() {
    CaptureWriter writer(folder / "x.pcap", {"a"});
    std::mt19937 random(3);  // more than a block of either, which cannot be made smaller
    for (Nanos at = 0; at < 40; at++) {
      std::vector<std::uint8_t> bytes(9000);
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
      writer.write(0, at, CapturedFrame{bytes, 9000});
    }
    writer.finish();
    plain = test::read_bytes(folder / "x.pcap");
  }
  test::TemporaryFolder folder;
  std::string plain;
};

TEST_F(PackedCapture, IsReadWhateverItsName) {
  for (const std::string& packed : {gzip(plain), zstd(plain)}) {
    test::write_bytes(folder / "any.name", packed);
    const test::Contents contents = test::read_capture(folder / "any.name");
    EXPECT_EQ(contents.records, test::read_capture(folder / "x.pcap").records);
    EXPECT_EQ(contents.end, CaptureReader::Status::kEnd);
  }
}

TEST_F(PackedCapture, WithJunkBehindItIsReadWhole) {
  for (const std::string& packed : {gzip(plain), zstd(plain)}) {
    test::write_bytes(folder / "junk", packed + "junk");
    CaptureReader reader(folder / "junk");
    CaptureRecord record;
    CaptureReader::Status status{};
    while ((status = reader.next(record)) == CaptureReader::Status::kPacket) continue;
    EXPECT_EQ(status, CaptureReader::Status::kEnd) << reader.error();
    EXPECT_EQ(reader.records(), 40u);
    EXPECT_TRUE(reader.ignored_rest());
  }
}

// Between two records, too, the end of the file is not the end of the capture.
TEST_F(PackedCapture, ThatIsCutSaysSo) {
  for (const std::string& packed : {gzip(plain), zstd(plain)}) {
    test::write_bytes(folder / "cut", packed.substr(0, packed.size() - 3));
    const test::Contents contents = test::read_capture(folder / "cut");
    EXPECT_EQ(contents.end, CaptureReader::Status::kCut);
    EXPECT_GT(contents.records.size(), 20u);
  }
}

TEST_F(PackedCapture, ThatIsBrokenSaysHow) {
  std::string packed = gzip(plain);
  packed[packed.size() - 6] ^= 1;  // of the checksum
  test::write_bytes(folder / "broken", packed);
  CaptureReader reader(folder / "broken");
  CaptureRecord record;
  CaptureReader::Status status{};
  while ((status = reader.next(record)) == CaptureReader::Status::kPacket) continue;
  EXPECT_EQ(status, CaptureReader::Status::kBroken);
  EXPECT_EQ(reader.error(), "its gzip data are broken: incorrect data check");
  test::write_bytes(folder / "text", gzip("no capture at all, but long enough for a header of one"));
  try {
    CaptureReader none(folder / "text");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("neither pcap nor pcapng"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace rocebox
