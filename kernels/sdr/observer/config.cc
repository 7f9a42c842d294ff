// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/observer/config.h"

#include <bit>
#include <set>
#include <utility>

#include "kernels/sdr/observer/slot.h"

namespace rocebox::sdr::observer {
namespace {

constexpr std::string_view kMtuWords[] = {"auto", "64", "128", "256", "512", "1024", "2048", "4096"};
constexpr std::string_view kServiceWords[] = {"uc", "rc", "both"};
constexpr std::string_view kByWords[] = {"addresses", "rkey"};

void check_rows(Fields& f, const Config& config) {
  std::set<std::pair<roce::IpAddress, std::int64_t>> taken;
  for (const QpRow& row : config.queue_pairs) {
    if (row.generation >= config.generations) f.refuse("queue_pairs", "has a generation that `generations` has not");
    if (row.connection >= config.connections) f.refuse("queue_pairs", "has a connection that `connections` has not");
    if (row.first_qpn + row.channels - 1 > 0xFFFFFF) f.refuse("queue_pairs", "has numbers beyond 24 bits");
    if (!row.destination) continue;  // refused where it stands
    for (std::int64_t i = 0; i < row.channels; i++)
      if (!taken.insert({*row.destination, row.first_qpn + i}).second)
        return f.refuse("queue_pairs", "has a queue pair twice");
  }
  if (static_cast<std::int64_t>(taken.size()) > config.qps) f.refuse("queue_pairs", "are more than `qps`");
}

}  // namespace

void QpRow::fields(Fields& f) {
  f.address("destination", destination, Presence::kRequired, "IP address of the receiver");
  f.integer("first_qpn", first_qpn, {2, 0xFFFFFF}, "its first queue pair number");
  f.integer("channels", channels, {1, 1024}, "how many, one after the other");
  f.integer("connection", connection, {0, kGroupsMax - 1}, "connection of SDR that they are of, a number of your own");
  f.integer("generation", generation, {0, kGenerationsMax - 1}, "of messages that they carry");
}

void Config::fields(Fields& f) {
  f.integer("message_bits", message_bits, {1, 16}, "bits of the immediate that have the message ID, the highest");
  f.integer("offset_bits", offset_bits, {1, 31}, "bits that have the packet's offset in the message");
  f.integer("fragment_bits", fragment_bits, {0, 16}, "bits that have a fragment of the user's immediate, the lowest");
  if (!layout().valid())
    f.refuse("message_bits", "with the offset's and the fragment's make up 32, fragments divide 32");
  f.integer("messages", messages, {0, 1 << 16}, "message IDs in use; 0: learnt, up to all that there are");
  if (messages > std::int64_t{1} << message_bits) f.refuse("messages", "have more IDs than `message_bits`");
  f.integer("packets", packets, {1, 1 << 18}, "packets of a message that have a bit; more are counted");
  f.integer("chunk", chunk, {1, 1 << 16}, "packets of a chunk of the bitmap, a power of two");
  if (!std::has_single_bit(static_cast<std::uint64_t>(chunk))) f.refuse("chunk", "is no power of two");
  f.choice("mtu", mtu, kMtuWords, "bytes of a full packet; auto: the next power of two of the largest that has come");
  f.integer("generations", generations, {1, kGenerationsMax},
            "generations of queue pairs, by which IDs are told apart");
  f.choice("service", service, kServiceWords, "transport that the Writes use");
  f.choice("connections_by", connections_by, kByWords,
           "what is one connection of SDR: all between two addresses, or each remote key there");
  f.list("queue_pairs", queue_pairs, kQpRowsMax, "queue pairs that are known; the others are learnt");
  f.integer("connections", connections, {1, kGroupsMax}, "connections of SDR that are watched");
  f.integer("qps", qps, {1, kQpsMax}, "transport queue pairs that are watched");
  f.integer("listed", listed, {0, 1 << 20}, "messages that the report still lists when their ID is used again");
  f.integer("events", events, {0, 1 << 20}, "late packets, duplicates, gaps that are listed: the first ones");
  f.boolean("bitmaps", bitmaps, "the report has each message's bitmap of chunks");
  f.boolean("check_icrc", check_icrc, "packets with a wrong ICRC are none");
  const std::uint64_t slot_bytes = sizeof(Slot) + words() * sizeof(std::uint64_t);
  if (static_cast<std::uint64_t>(connections) * slots() * slot_bytes > kStateBytesMax)
    f.refuse("connections", "need too much memory: times messages and packets it may be 4 GiB");
  check_rows(f, *this);
}

}  // namespace rocebox::sdr::observer
