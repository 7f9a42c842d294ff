// SPDX-License-Identifier: BSD-3-Clause
// Reliable messages of the C API.
#include <algorithm>

#include "kernels/sdr/sdk/objects.h"

using namespace rocebox;
using namespace rocebox::libsdr;

namespace {

sdr::ReliableOptions options_of(const sdr_reliable_attr& a, const sdr::QueuePairOptions& qp) {
  sdr::ReliableOptions o;
  if (a.kind < SDR_SELECTIVE_REPEAT || a.kind > SDR_ERASURE_CODING) throw ConfigError("there is no such `kind`");
  if (!(a.alpha >= 0 && a.alpha <= 1000 && a.beta >= 0 && a.beta <= 1000) || a.rtt_ns > 100 * std::uint64_t{kSecond} ||
      a.poll_ns > std::uint64_t{kSecond} || a.timeout_ns > 86400 * std::uint64_t{kSecond})
    throw ConfigError(
        "`alpha` and `beta` are from 0 to 1000, `rtt_ns` at most 100 s, `poll_ns` a second, `timeout_ns` a day");
  o.kind = a.kind == SDR_SELECTIVE_REPEAT        ? sdr::Reliability::kSelectiveRepeat
           : a.kind == SDR_SELECTIVE_REPEAT_NACK ? sdr::Reliability::kSelectiveRepeatNack
                                                 : sdr::Reliability::kErasureCoding;
  o.coding.rtt = static_cast<Nanos>(a.rtt_ns);
  o.coding.alpha = a.alpha, o.coding.beta = a.beta;
  o.coding.injection = sdr::injection_of(qp.chunk_bytes(), a.bandwidth);
  o.coding.global_timeout = a.timeout_ns ? static_cast<Nanos>(a.timeout_ns) : 60 * kSecond;
  o.poll = a.poll_ns ? static_cast<Nanos>(a.poll_ns) : sdr::poll_of(o.coding.rtt);
  if (o.kind != sdr::Reliability::kErasureCoding) return o;
  if (a.code != SDR_CODE_MDS && a.code != SDR_CODE_XOR) throw ConfigError("there is no such `code`");
  o.coding.shape = {a.code == SDR_CODE_XOR ? sdr::CodeKind::kXor : sdr::CodeKind::kMds, a.data, a.parity};
  if (const char* why = sdr::mistake_of(qp, o)) throw ConfigError(why);
  return o;
}

void on_over(nic_model::Host&, sdr::Transfer& core) {
  static_cast<Transfer&>(core).over.store(core.error.empty() ? 1 : 2, std::memory_order_release);
}

int post(const char* call, sdr_reliable* handle, bool sends, std::uint64_t addr, std::uint64_t length,
         std::uint32_t lkey, sdr_transfer** out) {
  return guarded(call, [&] {
    auto* reliable = find<Reliable>(HandleKind::kReliable, handle);
    if (!reliable || !out || length == 0)
      return fail(call, "it needs a reliable queue pair, a length and where to write");
    QueuePair& qp = *reliable->qp;
    if (!(sends ? qp.sends : qp.receives)) return fail(call, "the queue pair was not made for that");
    const char* error = nullptr;
    auto* transfer = ObjectPool<Transfer>::get().take();
    qp.context->device->call([&](nic_model::Host& host) {
      if (!qp.context->backend->has_memory(lkey, addr, length, !sends))
        error = sends ? "the memory is not registered" : "the memory is not registered for remote writes";
      const Handles::Value value = error ? 0 : Handles::get().add(HandleKind::kTransfer, transfer);
      if (!error && !value) error = kNoHandles;
      if (error) return;
      static_cast<sdr::Transfer&>(*transfer) = sdr::Transfer();
      transfer->address = addr, transfer->length = length, transfer->key = lkey;
      transfer->qp = &qp;
      transfer->over = 0;
      note_handle(qp, value);
      *out = give<sdr_transfer>(value);
      if (sends)
        reliable->core->sender.send(host, *transfer);
      else
        reliable->core->receiver.receive(host, *transfer);
    });
    if (!error) return SDR_SUCCESS + 0;
    ObjectPool<Transfer>::get().give_back(transfer);
    return fail(call, error);
  });
}

}  // namespace

extern "C" {

sdr_reliable* sdr_reliable_create(sdr_qp* handle, const sdr_reliable_attr* attr) {
  sdr_reliable* made = nullptr;
  guarded(__func__, [&] {
    auto* qp = find<QueuePair>(HandleKind::kQueuePair, handle);
    if (!qp || !attr) return fail("sdr_reliable_create", "it needs a queue pair and attributes");
    const sdr::ReliableOptions options = options_of(*attr, qp->core->options());
    const char* error = nullptr;
    qp->context->device->call([&](nic_model::Host&) {
      if (qp->reliable.load() != 0 || has_handles(*qp)) {
        error = "the queue pair is a reliable one's already, or has messages under way";
        return;
      }
      auto* reliable = ObjectPool<Reliable>::get().take();
      const Handles::Value value = Handles::get().add(HandleKind::kReliable, reliable);
      if (!value) {
        ObjectPool<Reliable>::get().give_back(reliable);
        error = kNoHandles;
        return;
      }
      reliable->qp = qp;
      reliable->core = std::make_unique<sdr::ReliableQueuePair>(*qp->core, options, on_over, on_over);
      qp->reliable = value;
      made = give<sdr_reliable>(value);
    });
    return error ? fail("sdr_reliable_create", error) : SDR_SUCCESS + 0;
  });
  return made;
}

int sdr_reliable_send(sdr_reliable* r, uint64_t addr, uint64_t length, uint32_t lkey, sdr_transfer** t) {
  return post(__func__, r, true, addr, length, lkey, t);
}

int sdr_reliable_recv(sdr_reliable* r, uint64_t addr, uint64_t length, uint32_t lkey, sdr_transfer** t) {
  return post(__func__, r, false, addr, length, lkey, t);
}

int sdr_reliable_poll(sdr_transfer* handle, int* completed) {
  auto* transfer = find<Transfer>(HandleKind::kTransfer, handle);
  if (!transfer || !completed) return fail(__func__, "it needs the handle of a transfer and where to write");
  const int over = transfer->over.load(std::memory_order_acquire);
  *completed = over != 0;
  if (!over) return SDR_SUCCESS;
  const auto value = reinterpret_cast<Handles::Value>(handle);
  const std::string error = over == 2 ? transfer->error : "";
  bool mine = false;
  transfer->qp->context->device->call([&](nic_model::Host&) {
    mine = Handles::get().find(HandleKind::kTransfer, value) == transfer;
    Handles::get().remove(value);
  });
  if (!mine) return fail(__func__, "another thread has polled it to its end");
  ObjectPool<Transfer>::get().give_back(transfer);
  return error.empty() ? SDR_SUCCESS + 0 : fail(__func__, error);
}
}
