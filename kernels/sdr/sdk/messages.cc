// SPDX-License-Identifier: BSD-3-Clause
// Messages of the C API: what is posted goes to the NIC's core, what is looked at is read in place.
#include "kernels/sdr/sdk/objects.h"

using namespace rocebox;
using namespace rocebox::libsdr;

namespace {

constexpr const char* kCannotSend =
    "the queue pair is not connected, or broken; the memory is not registered; or the bytes lie outside of a message "
    "or "
    "of the peer's buffer";

// The queue pair, when it can do that; null, and the error is told.
QueuePair* usable(sdr_qp* handle, const char* call, bool sends, const void* a, const void* b) {
  auto* qp = find<QueuePair>(HandleKind::kQueuePair, handle);
  const char* why = !qp || !a || !b       ? "it needs a queue pair, a request and where to write the handle"
                    : qp->reliable.load() ? "the queue pair is a reliable one's"
                    : !(sends ? qp->sends : qp->receives) ? "the queue pair was not made for that"
                                                          : nullptr;
  if (why) fail(call, why);
  return why ? nullptr : qp;
}

// Begins a message and gives out its handle, or neither. In calls of the NIC.
sdr::Status start(QueuePair& qp, const std::uint32_t* user, bool streams, sdr::Send*& send, sdr_send_handle** out) {
  auto* made = ObjectPool<SendHandle>::get().take();
  const Handles::Value value = Handles::get().add(HandleKind::kSend, made);
  const sdr::Status status = value ? qp.core->start_send(user, send) : sdr::Status::kRetry;
  if (status != sdr::Status::kSuccess) {
    Handles::get().remove(value);
    ObjectPool<SendHandle>::get().give_back(made);
    return status;
  }
  made->qp = &qp, made->core = send, made->streams = streams;
  note_handle(qp, value);
  *out = give<sdr_send_handle>(value);
  return status;
}

}  // namespace

extern "C" {

int sdr_recv_post(sdr_qp* handle, sdr_recv_wr* wr, sdr_recv_handle** out) {
  return guarded(__func__, [&] {
    QueuePair* qp = usable(handle, "sdr_recv_post", false, wr, out);
    if (!qp) return SDR_ERROR + 0;
    sdr::Status status = sdr::Status::kError;
    qp->context->device->call([&](nic_model::Host& host) {
      sdr::Receive* made = nullptr;
      auto* receive = ObjectPool<ReceiveHandle>::get().take();
      const Handles::Value value = Handles::get().add(HandleKind::kReceive, receive);
      status = value ? qp->core->post_receive(host, wr->address, wr->max_length, wr->lkey, made) : sdr::Status::kRetry;
      if (status != sdr::Status::kSuccess) {
        Handles::get().remove(value);
        ObjectPool<ReceiveHandle>::get().give_back(receive);
        return;
      }
      receive->qp = qp, receive->core = made, receive->bitmap = made->bitmap, receive->chunks = made->chunks;
      note_handle(*qp, value);
      *out = give<sdr_recv_handle>(value);
    });
    return code_of(status, "sdr_recv_post",
                   "the length is 0 or above that of a message, the memory is not registered for remote writes, or the "
                   "queue pair is broken");
  });
}

int sdr_recv_imm_get(sdr_recv_handle* handle, uint32_t* imm) {
  const auto* receive = find<ReceiveHandle>(HandleKind::kReceive, handle);
  if (!receive || !imm) return fail(__func__, "it needs the handle of a posted receive and where to write");
  return code_of(receive->qp->core->user_immediate(*receive->core, *imm), __func__, "immediates have no room here");
}

int sdr_recv_bitmap_get(sdr_recv_handle* handle, uint8_t** bitmap, size_t* length) {
  const auto* receive = find<ReceiveHandle>(HandleKind::kReceive, handle);
  if (!receive || !bitmap || !length)
    return fail(__func__, "it needs the handle of a posted receive and where to write");
  *bitmap = receive->bitmap;
  *length = receive->chunks;
  return SDR_SUCCESS;
}

int sdr_recv_bitmap_pack(const uint8_t* bitmap, size_t length, uint8_t* bits) {
  if (!bitmap || !bits) return fail(__func__, "it needs a bitmap and where to write");
  for (size_t i = 0; i < length; i++) {
    if (i % 8 == 0) bits[i / 8] = 0;
    if (__atomic_load_n(&bitmap[i], __ATOMIC_ACQUIRE)) bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 1u << i % 8);
  }
  return SDR_SUCCESS;
}

int sdr_recv_bitmap_chunk_expand(sdr_recv_handle* handle, size_t chunk, uint64_t* packets) {
  const auto* receive = find<ReceiveHandle>(HandleKind::kReceive, handle);
  if (!receive || !packets) return fail(__func__, "it needs the handle of a posted receive and where to write");
  if (chunk >= receive->chunks) return fail(__func__, "there is no such chunk");
  return code_of(receive->qp->core->packets_of_chunk(*receive->core, static_cast<std::uint32_t>(chunk), *packets),
                 __func__, "a chunk has more than 64 packets");
}

int sdr_recv_complete(sdr_recv_handle* handle) {
  auto* receive = find<ReceiveHandle>(HandleKind::kReceive, handle);
  if (!receive) return fail(__func__, "that is no handle of a posted receive");
  const auto value = reinterpret_cast<Handles::Value>(handle);
  sdr::Status status = sdr::Status::kError;
  receive->qp->context->device->call([&](nic_model::Host& host) {
    if (Handles::get().find(HandleKind::kReceive, value) != receive) return;  // another thread was faster
    Handles::get().remove(value);
    status = receive->qp->core->complete(host, *receive->core);
  });
  if (status == sdr::Status::kError) return fail(__func__, "it is not posted any more");
  ObjectPool<ReceiveHandle>::get().give_back(receive);
  return SDR_SUCCESS;
}

int sdr_send_post(sdr_qp* handle, sdr_send_wr* wr, sdr_send_handle** out) {
  return guarded(__func__, [&] {
    QueuePair* qp = usable(handle, "sdr_send_post", true, wr, out);
    if (!qp) return SDR_ERROR + 0;
    sdr::Status status = sdr::Status::kError;
    qp->context->device->call([&](nic_model::Host& host) {
      sdr::QueuePair& core = *qp->core;
      status = core.fits(core.next_send(), wr->local_addr, wr->length, wr->lkey, wr->remote_offset);
      sdr::Send* send = nullptr;
      const bool has_user = wr->opcode == SDR_WR_WRITE_WITH_IMM;
      if (status == sdr::Status::kSuccess) status = start(*qp, has_user ? &wr->imm_value : nullptr, false, send, out);
      if (status != sdr::Status::kSuccess) return;
      core.add(host, *send, wr->local_addr, wr->length, wr->lkey, wr->remote_offset);
      core.end_send(host, *send);
    });
    return code_of(status, "sdr_send_post", kCannotSend);
  });
}

int sdr_streaming_send_start(sdr_qp* handle, sdr_send_start_wr* wr, sdr_send_handle** out) {
  return guarded(__func__, [&] {
    QueuePair* qp = usable(handle, "sdr_streaming_send_start", true, wr, out);
    if (!qp) return SDR_ERROR + 0;
    sdr::Status status = sdr::Status::kError;
    qp->context->device->call([&](nic_model::Host&) {
      sdr::Send* send = nullptr;
      status = start(*qp, wr->opcode == SDR_WR_WRITE_WITH_IMM ? &wr->imm_value : nullptr, true, send, out);
    });
    return code_of(status, "sdr_streaming_send_start", "the queue pair is not connected, or broken");
  });
}

int sdr_streaming_send_continue(sdr_send_handle* handle, sdr_send_continue_wr* wr) {
  auto* send = find<SendHandle>(HandleKind::kSend, handle);
  if (!send || !wr || !send->streams) return fail(__func__, "it needs the handle of a streaming send and a request");
  sdr::Status status = sdr::Status::kError;
  send->qp->context->device->call([&](nic_model::Host& host) {
    status = send->qp->core->fits(send->core->number, wr->local_addr, wr->length, wr->lkey, wr->remote_offset);
    if (status == sdr::Status::kSuccess)
      status = send->qp->core->add(host, *send->core, wr->local_addr, wr->length, wr->lkey, wr->remote_offset);
  });
  return code_of(status, __func__, kCannotSend);
}

int sdr_streaming_send_end(sdr_send_handle* handle) {
  auto* send = find<SendHandle>(HandleKind::kSend, handle);
  if (!send || !send->streams) return fail(__func__, "that is no handle of a streaming send");
  send->qp->context->device->call([&](nic_model::Host& host) { send->qp->core->end_send(host, *send->core); });
  return SDR_SUCCESS;
}

int sdr_send_poll(sdr_send_handle* handle, int* completed, sdr_send_status* status) {
  auto* send = find<SendHandle>(HandleKind::kSend, handle);
  if (!send || !completed) return fail(__func__, "it needs the handle of a send and where to write");
  *completed = send->core->completed();
  if (!*completed) return SDR_SUCCESS;
  const auto value = reinterpret_cast<Handles::Value>(handle);
  bool mine = false;
  send->qp->context->device->call([&](nic_model::Host&) {
    if (Handles::get().find(HandleKind::kSend, value) != send) return;  // another thread was faster
    mine = true;
    if (status) status->flags = send->core->failed ? static_cast<std::uint32_t>(SDR_SEND_FAILED) : 0;
    Handles::get().remove(value);
    send->qp->core->release(*send->core);
  });
  if (!mine) return fail(__func__, "another thread has polled it to its end");
  ObjectPool<SendHandle>::get().give_back(send);
  return SDR_SUCCESS;
}
}
