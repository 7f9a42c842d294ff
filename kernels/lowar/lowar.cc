// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/lowar.h"

#include "kernels/lowar/decoder.h"
#include "kernels/lowar/encoder.h"

namespace rocebox {
namespace lowar {
namespace {

// What one should know of a gateway that sees so many LoWAR packets at its host's side and at the link's, and so many
// data packets there; null: nothing.
const char* note_of(std::uint64_t at_host, std::uint64_t at_link, std::uint64_t data_at_link) {
  if (at_link) return nullptr;
  if (at_host)
    return "LoWAR packets come in at the host's side only: this gateway stands the wrong way round; write its path as "
           "HOST <-> lowar <-> LINK";
  if (data_at_link)
    return "data came over the link, but no LoWAR packet: there is no gateway at its far end, or this one stands the "
           "wrong way round";
  return nullptr;
}

class Gateway final : public Kernel {
 public:
  using Config = lowar::Config;
  Gateway(const Config& config, Stats& stats)
      : encoder_(config, stats, kLinkPort), decoder_(config, stats, kHostPort, kLinkPort, encoder_) {}

  void process(Context& context, Port in, Batch& batch) override {
    if (in == kHostPort)
      encoder_.process(context, batch);
    else
      decoder_.process(context, batch);
  }
  void start(Context& context) override { decoder_.start(context); }
  void on_timer(Context& context, Timer& timer) override { decoder_.on_timer(context, timer); }
  void report(Report& report) const override {
    const char* note = note_of(encoder_.lowar_packets(), decoder_.lowar_packets(), decoder_.packets());
    if (note) report.table("notes", 1, [&](Report& row, std::size_t) { row.text("note", note); });
  }

 private:
  Encoder encoder_;
  Decoder decoder_;
};

constexpr Example kLowarExamples[] = {
    {"an eighth more for one loss in every eight packets", "{r: 8, c: 1, roce_mtu: 1024, link_mtu: 1500}"},
    {"bursts of up to eight losses", "{r: 64, c: 8}"},
    {"limits reached: few streams, units and places to wait",
     "{r: 4, c: 2, streams: 5, units: 3, reordering: 16, reorder: 0, hold_min: 5us, hold_max: 20us}"},
    {"as much redundancy as the link needs, none on a clean one",
     "{adapt: true, target_loss: 0.001%, redundancy_max: 50%}"},
    {nullptr, nullptr}};

}  // namespace

std::unique_ptr<Kernel> make(const Config& config, Stats& stats) { return std::make_unique<Gateway>(config, stats); }

StateBytes state_bytes(const Config& config) {
  const auto streams = static_cast<std::uint32_t>(config.streams);
  const CodingUnits units(static_cast<std::uint32_t>(config.units),
                          static_cast<std::uint32_t>(sizeof(CodedPrefix)) + config.transport_bytes_max());
  return {Encoder::stream_bytes(streams), Decoder::stream_bytes(streams), units.bytes(),
          static_cast<std::size_t>(config.reordering) * sizeof(ReorderingBuffer::Slot)};
}

}  // namespace lowar

Component lowar_component() {
  return two_sided_kernel<lowar::Gateway>(
      "lowar", "forward error correction over a lossy link: repair packets out, lost packets rebuilt",
      lowar::kLowarExamples);
}

}  // namespace rocebox
