// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/workload/config.h"

#include <algorithm>
#include <bit>

#include "runtime/kernel/rate_queue.h"

namespace rocebox::sdr {
namespace {

constexpr std::string_view kLayers[] = {"none", "selective_repeat", "selective_repeat_nack", "erasure_coding"};
constexpr std::string_view kCodes[] = {"mds", "xor"};
constexpr std::string_view kTimeouts[] = {"data_and_parity", "data_only"};

std::uint32_t to_32(std::int64_t value) { return static_cast<std::uint32_t>(value); }

}  // namespace

void MessagesConfig::fields(Fields& f) {
  f.choice("reliability", reliability, kLayers, "what makes messages whole");
  f.integer("messages", messages, {1, 1 << 24}, "how many are sent");
  f.integer("in_flight", in_flight, {1, 4096}, "messages under way at most");
  f.bytes("min_size", min_size, {1, std::uint64_t{1} << 34}, "sizes are drawn evenly from this one");
  f.bytes("max_size", max_size, {1, std::uint64_t{1} << 34}, "to this one");
  f.bytes("mtu", mtu, {64, 4096}, "payload of a packet, a power of two");
  f.bytes("chunk", chunk, {64, std::uint64_t{1} << 30},
          "bytes for which the bitmap has a byte: a power of two of MTUs");
  f.bytes("message_bytes", message_bytes, {64, std::uint64_t{1} << 34},
          "the longest message of SDR; longer ones go in parts");
  f.integer("message_bits", message_bits, {1, 31}, "bits of the message ID in an immediate");
  f.integer("offset_bits", offset_bits, {1, 31}, "bits of the packet offset in it");
  f.integer("fragment_bits", fragment_bits, {0, 16}, "bits of the user's immediate in it");
  f.integer("message_ids", message_ids, {2, 1 << 20}, "messages of SDR under way at most, a power of two");
  f.integer("channels", channels, {1, kChannelsMax}, "queue pairs that packets are spread over, a DPA thread each");
  f.integer("generations", generations, {1, kGenerationsMax}, "rounds of message IDs that are told apart");
  f.integer("send_batch", send_batch, {1, 64}, "packets for one doorbell and one completion");
  f.integer("dpa_senders", dpa_senders, {0, kChannelsMax},
            "threads of the DPA that post what is sent, each for some channels; 0: the host posts it");
  f.integer("backlog", backlog, {1, 1 << 20}, "packets before the wire, beyond which no chunk is sent");
  f.boolean("uc", unreliable, "packets go over UC; else over RC");
  f.choice("code", code, kCodes, "the erasure code");
  f.integer("data", data, {1, kCodeChunksMax}, "its data chunks: k");
  f.integer("parity", parity, {1, kCodeChunksMax}, "its parity chunks: m");
  f.duration("rtt", rtt, {0, 10 * kSecond}, "round-trip time of the path, for timeouts");
  f.fraction("alpha", alpha, {0, 100}, "RTO = RTT + alpha RTT");
  f.fraction("beta", beta, {0, 100}, "share of the RTT in the fallback timeout");
  f.choice("fallback_timeout", fallback, kTimeouts, "that of section 4.2.3, or that of 4.1.2");
  f.duration("global_timeout", global_timeout, {kMillisecond, 3600 * kSecond}, "then a message has failed");
  f.duration("poll", poll, {0, kSecond}, "how often the receiver looks at its bitmaps; 0: a hundredth of the RTT");
  f.rate("bandwidth", bandwidth, {0, kRateMax}, "of the path, for the fallback timeout; 0: the NIC's rate");
  f.integer("ack_timeout", ack_timeout, {1, 31}, "of reliable connections: 4.096us times 2 to this");
  recovery.fields(f);
  if (std::string why = mistake(); !why.empty()) f.refuse("reliability", "does not go with the rest: " + why);
}

std::string MessagesConfig::mistake() const {
  if (min_size > max_size) return "`min_size` is above `max_size`";
  if (chunk % mtu || !std::has_single_bit(chunk / mtu)) return "a `chunk` must be a power of two of MTUs";
  if (std::string why = queue_pair().mistake(); !why.empty()) return why;
  const char* why = mistake_of(queue_pair(), reliable(1));
  return why ? why : "";
}

QueuePairOptions MessagesConfig::queue_pair() const {
  QueuePairOptions o;
  o.layout = {static_cast<unsigned>(message_bits), static_cast<unsigned>(offset_bits),
              static_cast<unsigned>(fragment_bits)};
  o.mtu = static_cast<std::uint32_t>(mtu);
  o.packets_a_chunk = static_cast<std::uint32_t>(chunk / mtu);
  o.slots = to_32(message_ids);
  o.message_bytes = message_bytes;
  o.channels = to_32(channels);
  o.generations = o.root_keys = to_32(generations);
  o.unreliable = unreliable;
  o.send_batch = to_32(send_batch);
  o.ack_timeout = static_cast<std::uint8_t>(ack_timeout);
  o.recovery = recovery;
  return o;
}

ReliableOptions MessagesConfig::reliable(std::uint64_t rate) const {
  ReliableOptions o;
  o.kind = reliability;
  o.coding.shape = {code, static_cast<unsigned>(data), static_cast<unsigned>(parity)};
  o.coding.injection = injection_of(chunk, bandwidth ? bandwidth : rate);
  o.coding.rtt = rtt, o.coding.alpha = alpha, o.coding.beta = beta;
  o.coding.fallback = fallback, o.coding.global_timeout = global_timeout;
  o.poll = poll ? poll : poll_of(rtt);
  o.backlog = to_32(backlog);
  return o;
}

}  // namespace rocebox::sdr
