// SPDX-License-Identifier: BSD-3-Clause
// What a gateway keeps of a stream that comes over the link. decoder.h says who calls which of these objects, and when.
#pragma once
#include "kernels/lowar/adaptation.h"
#include "kernels/lowar/block_decoder.h"
#include "kernels/lowar/order_queue.h"
#include "kernels/lowar/receive_sequence.h"
#include "kernels/lowar/recovered_packets.h"

namespace rocebox::lowar {

/// These objects (in an order that leaves no room between them) know nothing of each other; what concerns two of them
/// is done by Delivery and Decoder.
struct ReceivedStream {
  OrderQueue order;            ///< what is kept back, and for how long
  ReceiveSequence sequence;    ///< which PSN is expected
  BlockDecoder block;          ///< repair: the block that the stream is in, and its coding units
  RecoveredPackets recovered;  ///< repair: packets whose originals may still come
  Adaptation adaptation;       ///< what is measured, said and asked of (r, c)

  /// The next packets of the stream were lost.
  void count_lost(std::uint32_t packets) {
    adaptation.lost(packets);
    sequence.count_lost(packets);
  }
  /// One that counts as lost came after all.
  void take_back_lost() {
    adaptation.take_back_lost();
    sequence.take_back_lost();
  }
};

}  // namespace rocebox::lowar
