// SPDX-License-Identifier: BSD-3-Clause
// ttl: lowers the TTL of RoCEv2 packets by one; what is at or below `floor` ends here. The ICRC needs no update: it
// does not cover the TTL. Example: `path: host <-> ttl <-> wire`.
#include "runtime/kernel/kernel_options.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/parse.h"

using namespace rocebox;

namespace {

class Ttl final : public Kernel {
 public:
  struct Config {
    std::int64_t floor = 1;
    void fields(Fields& f) { f.integer("floor", floor, {0, 255}, "packets at or below this are dropped"); }
  };

  Ttl(const Config& config, Stats& stats)
      : floor_(config.floor), drop_expired_(stats.counter("drop_expired", "TTL or hop limit at or below the floor")) {}

  void process(Context&, Port, Batch& batch) override {
    for (unsigned i = 0; i < batch.size(); i++) {
      const Packet packet = batch[i];
      if (!roce::is_roce(packet)) continue;  // what is not RoCEv2 passes untouched
      const PacketMeta& meta = packet.meta();
      const std::uint32_t offset = meta.l3_offset + (meta.ip_version == 4 ? 8u : 7u);
      const std::uint8_t ttl = packet.data()[offset];
      if (ttl <= floor_)
        batch.drop(i, drop_expired_);
      else
        roce::edit_number<1>(packet, offset, ttl - 1u);  // keeps the IPv4 checksum right
    }
  }

 private:
  std::int64_t floor_;
  Counter& drop_expired_;
};

}  // namespace

extern "C" const Component* rocebox_components() {
  static const Component components[] = {two_sided_kernel<Ttl>("ttl", "lowers the TTL of RoCEv2 packets"), {}};
  return components;
}
