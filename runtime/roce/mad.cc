// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/mad.h"

#include "runtime/roce/parse.h"

namespace rocebox::roce {

const MadHeader* mad(Packet packet) {
  const PacketMeta& meta = packet.meta();
  if (opcode_info(packet).service != Service::kUd || bth(packet).destination_qp != kGsiQpn) return nullptr;
  if (meta.payload_bytes < kMadBytes) return nullptr;
  const auto* header = packet.header<MadHeader>(meta.payload_offset);
  return header && header->base_version == kMadBaseVersion ? header : nullptr;
}

std::uint16_t cm_attribute(const MadHeader& header) {
  const bool cm = header.management_class == static_cast<std::uint8_t>(MadClass::kCommunication) &&
                  header.method == static_cast<std::uint8_t>(MadMethod::kSend);
  return cm ? static_cast<std::uint16_t>(header.attribute_id.get()) : std::uint16_t{0};
}

std::string_view cm_attribute_name(std::uint16_t attribute) {
  constexpr std::string_view kNames[] = {"ConnectRequest",    "MsgRcptAck",           "ConnectReject",
                                         "ConnectReply",      "ReadyToUse",           "DisconnectRequest",
                                         "DisconnectReply",   "ServiceIDResReq",      "ServiceIDResReqResp",
                                         "LoadAlternatePath", "AlternatePathResponse"};
  const unsigned first = static_cast<unsigned>(CmAttribute::kReq);
  return attribute >= first && attribute - first < std::size(kNames) ? kNames[attribute - first] : "unknown";
}

}  // namespace rocebox::roce
