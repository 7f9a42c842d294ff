// SPDX-License-Identifier: BSD-3-Clause
// The observer of a NIC of nic_fuzz.cc: at each event it does the next thing that the input has told it to do.
#pragma once
#include <deque>

#include "nic_model/rate/observer.h"
#include "tests/fuzz/fuzz.h"

namespace rocebox::fuzz::nic_bed {

class Meddler final : public nic_model::Observer {
 public:
  struct Command {
    std::uint8_t what, value;
    std::uint32_t qpn;  ///< 0: that of the event
  };
  static constexpr std::size_t kCommandsMax = 32;

  /// `queue_pairs` are all that its NIC has at a time.
  explicit Meddler(std::size_t queue_pairs) : queue_pairs_(queue_pairs) {}

  std::uint32_t events() const override { return UINT32_MAX; }
  void on_queue_pair(nic_model::Controls& controls, std::uint32_t qpn) override { act(controls, qpn); }
  void on_event(nic_model::Controls& controls, const nic_model::QpEvent& event) override {
    if (event.kind == nic_model::QpEventKind::kRtt) {
      require(event.rtt && event.rtt->rtt() >= 0 && event.rtt->network_rtt() <= event.rtt->rtt(),
              "an answer comes after its question");
      require(answers_++ < questions_, "what is answered was asked");
    }
    act(controls, event.qpn);
  }
  void on_timer(nic_model::Controls& controls) override { act(controls, 0); }
  bool on_rtt_request(nic_model::Controls& controls, const nic_model::RttRequest& request,
                      nic_model::RttAnswer& answer) override {
    std::uint8_t sum = 0;
    for (const std::uint8_t byte : request.packet) sum = static_cast<std::uint8_t>(sum + byte);
    require(request.sent_offset + 8 <= request.packet.size(), "the time is in the packet");
    answer.payload.fill(sum), answer.traffic_class = sum;
    act(controls, request.qpn);
    return sum & 1;
  }
  void on_peer_message(nic_model::Controls& controls, std::uint32_t qpn,
                       std::span<const std::uint8_t, nic_model::kPeerMessageBytes>) override {
    act(controls, qpn);
  }
  void tell(const Command& command) {
    if (commands_.size() < kCommandsMax) commands_.push_back(command);
  }

 private:
  void act(nic_model::Controls& controls, std::uint32_t event_qpn) {
    static constexpr double kRates[] = {0, 1e11, 1e9, 2e8, 1e14, 1, 4e10, 5e9};
    if (commands_.empty()) return;
    const Command command = commands_.front();
    commands_.pop_front();
    const std::uint32_t qpn = command.qpn ? command.qpn : event_qpn;
    const std::array<std::uint8_t, nic_model::kPeerMessageBytes> message{command.value};
    const double most = static_cast<double>(controls.line_rate());
    switch (command.what % 8) {
      case 0:
        if (controls.set_rate(qpn, kRates[command.value % 8]))
          require(controls.rate(qpn) >= 0 && controls.rate(qpn) <= most, "no rate is above the port's");
        return;
      case 1:
        return void(controls.set_response_rate(qpn, kRates[command.value % 8]));
      case 2:
        return void(controls.set_udp_source_port(qpn, static_cast<std::uint16_t>(command.value << 8 | 1)));
      case 3:
      case 4:
        questions_ += controls.request_rtt(qpn, static_cast<std::uint16_t>(0xC000 | command.value));
        return;
      case 5:
      case 6:
        return void(controls.send_to_peer(qpn, message));
      case 7:
        require(controls.nic_use().ready_queue_pairs <= queue_pairs_, "no more are ready than there are");
        return controls.wake_at(command.value ? controls.now() + command.value * kMicrosecond : kNever);
    }
  }

  const std::size_t queue_pairs_;
  std::deque<Command> commands_;
  std::uint64_t questions_ = 0, answers_ = 0;
};

}  // namespace rocebox::fuzz::nic_bed
