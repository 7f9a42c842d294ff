// SPDX-License-Identifier: BSD-3-Clause
// Contexts, queue pairs and memory of the C API.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/sdr/sdk/objects.h"

namespace rocebox::libsdr {

namespace {

constexpr unsigned kDrainingTries = 10000;  // a ring of completions is worked off in fewer

}  // namespace

int fail(std::string_view call, std::string_view why) {
  const std::string line = fmt::format("sdr: {}: {}\n", call, why);
  std::fwrite(line.data(), 1, line.size(), stderr);
  return SDR_ERROR;
}

int code_of(sdr::Status status, std::string_view call, std::string_view why) {
  if (status == sdr::Status::kError) return fail(call, why);
  return status == sdr::Status::kRetry ? SDR_RETRY : SDR_SUCCESS;
}

namespace {

// What a queue pair's attributes come to.
sdr::QueuePairOptions options_of(const sdr_qp_attr& attr, const Context& context) {
  sdr::QueuePairOptions o;
  if (attr.mtu < SDR_MTU_64 || attr.mtu > SDR_MTU_4096)
    throw ConfigError("`mtu` is none of SDR_MTU_64 to SDR_MTU_4096");
  const auto mtu_log = 6 + static_cast<std::uint32_t>(attr.mtu);
  const std::uint32_t chunk_log = attr.bitmap_chunk_size_log_bytes, messages_log = attr.max_log_num_msgs;
  if (chunk_log < mtu_log || chunk_log > 31)
    throw ConfigError("`bitmap_chunk_size_log_bytes` is below the MTU, or above 31");
  if (attr.max_in_flight_log_bytes > 62 || attr.max_in_flight_log_bytes < messages_log + std::size_t{mtu_log})
    throw ConfigError("`max_in_flight_log_bytes` is above 62, or leaves a message less than the MTU");
  const auto message_log = static_cast<std::uint32_t>(attr.max_in_flight_log_bytes) - messages_log;
  if (message_log > 31) throw ConfigError("a message would be longer than 2 GiB");
  o.mtu = 1u << mtu_log;
  o.packets_a_chunk = 1u << (chunk_log - mtu_log);
  o.message_bytes = std::uint64_t{1} << message_log;
  const std::uint32_t packets_log = message_log - mtu_log;
  if (messages_log + packets_log > 30) throw ConfigError("message ID and packet offset do not fit into 30 bits");
  // 10 + 18 + 4, or where that does not do, what is left with fragments of 2 bits, as 8 + 22 + 2.
  if (messages_log > 10 || packets_log > 18) o.layout = {30 - std::max(packets_log, 1u), std::max(packets_log, 1u), 2};
  o.slots = 1u << messages_log;
  o.channels = context.channels;
  const Environment& e = context.environment;
  o.generations = e.generations;
  o.root_keys = e.root_keys;
  o.root_entries = e.entries_factor;
  o.send_batch = e.send_batch;
  o.unreliable = e.unreliable;
  o.rnr_retry = e.rnr_retry;
  o.rate_limit = attr.rate_limit;
  return o;
}

void report(const Context& context, const QueuePair& qp) {
  const auto n = qp.core->arrivals();
  fmt::print(
      stderr,
      "sdr: receive workers: {} packets set a bit, {} of them the last of a chunk and {} of a message; {} fragments "
      "alone, {} duplicates, {} late by generation, {} of no message, {} outside; {} other completions\n",
      n[SDR_PACKET] + n[SDR_CHUNK] + n[SDR_MESSAGE], n[SDR_CHUNK] + n[SDR_MESSAGE], n[SDR_MESSAGE], n[SDR_FRAGMENT],
      n[SDR_DUPLICATE], n[SDR_LATE_GENERATION], n[SDR_NO_MESSAGE], n[SDR_OUTSIDE], context.backend->errors());
}

void report_sent(const Context& context) {
  const sdr::Backend& backend = *context.backend;
  const sdr::Backend::Sent sent = backend.sent();
  fmt::print(stderr, "sdr: {} transmit workers: {} packets in {} batches, {} activations\n", backend.senders(),
             sent.packets, sent.batches, sent.activations);
}

// The handle is gone where it is of that kind, and its object can be used again.
template <class T>
void give_back(HandleKind kind, Handles::Value value) {
  auto* object = static_cast<T*>(Handles::get().find(kind, value));
  if (!object) return;
  Handles::get().remove(value);
  ObjectPool<T>::get().give_back(object);
}

}  // namespace

bool has_handles(QueuePair& qp) {
  std::erase_if(qp.handles, [](Handles::Value one) { return !Handles::get().has(one); });
  qp.swept_at = std::max<std::size_t>(64, 2 * qp.handles.size());
  return !qp.handles.empty();
}

void note_handle(QueuePair& qp, Handles::Value value) {
  if (qp.handles.size() >= qp.swept_at) has_handles(qp);
  qp.handles.push_back(value);
}

void destroy(nic_model::Host& host, QueuePair& qp) {
  if (qp.context->environment.reports) report(*qp.context, qp);
  if (qp.context->environment.reports_sent) report_sent(*qp.context);
  for (const Handles::Value one : std::exchange(qp.handles, {})) {
    give_back<SendHandle>(HandleKind::kSend, one);
    give_back<ReceiveHandle>(HandleKind::kReceive, one);
    give_back<Transfer>(HandleKind::kTransfer, one);
  }
  if (const Handles::Value one = qp.reliable.exchange(0)) {
    auto* reliable = static_cast<Reliable*>(Handles::get().find(HandleKind::kReliable, one));
    reliable->core->sender.stop(host);
    reliable->core->receiver.stop(host);
    Handles::get().remove(one);
    ObjectPool<Reliable>::get().give_back(reliable);
  }
  qp.context->backend->destroy(host, *qp.core);
}

}  // namespace rocebox::libsdr

using namespace rocebox;
using namespace rocebox::libsdr;

extern "C" {

sdr_context* sdr_context_create(const char* dev_name, sdr_dev_attr* attr) {
  sdr_context* made = nullptr;
  guarded(__func__, [&] {
    if (!dev_name || !attr) return fail("sdr_context_create", "it needs a device's name and attributes");
    if (attr->num_channels < 1 || attr->num_channels > sdr::kChannelsMax || attr->log_max_qps > 6)
      return fail("sdr_context_create", "`num_channels` is from 1 to 128, `log_max_qps` at most 6");
    const Environment environment = Environment::read();
    libsdr::Device& device = Machine::get().device(dev_name);
    auto* context = ObjectPool<libsdr::Context>::get().take();
    context->device = &device;
    context->environment = environment;
    context->channels = attr->num_channels;
    context->queue_pairs_max = 1u << attr->log_max_qps;
    const Handles::Value value = Handles::get().add(HandleKind::kContext, context);
    std::string error = value ? "" : kNoHandles;
    device.call([&](nic_model::Host& host) {
      if (!error.empty()) return;
      try {
        context->backend =
            &device.take_backend(host, attr->num_channels, std::min(environment.senders, attr->num_channels));
      } catch (const std::exception& why) {
        error = why.what();
      }
    });
    if (!error.empty()) {
      Handles::get().remove(value);
      ObjectPool<libsdr::Context>::get().give_back(context);
      return fail("sdr_context_create", error);
    }
    made = give<sdr_context>(value);
    return SDR_SUCCESS + 0;
  });
  return made;
}

int sdr_context_destroy(sdr_context* ctx) {
  auto* context = find<libsdr::Context>(HandleKind::kContext, ctx);
  if (!context) return fail(__func__, "that is no context");
  if (!Handles::get().remove(reinterpret_cast<Handles::Value>(ctx))) return fail(__func__, "it is destroyed already");
  context->device->call([&](nic_model::Host& host) {
    for (const Handles::Value value : std::exchange(context->queue_pairs, {}))
      if (auto* qp = static_cast<QueuePair*>(Handles::get().find(HandleKind::kQueuePair, value))) {
        Handles::get().remove(value);
        destroy(host, *qp);
        ObjectPool<QueuePair>::get().give_back(qp);
      }
    for (const Handles::Value value : std::exchange(context->memory, {}))
      if (auto* memory = static_cast<Memory*>(Handles::get().find(HandleKind::kMemory, value))) {
        Handles::get().remove(value);
        context->backend->remove_memory(memory->key);
        ObjectPool<Memory>::get().give_back(memory);
      }
    context->device->give_back(*context->backend);
  });
  ObjectPool<libsdr::Context>::get().give_back(context);
  return SDR_SUCCESS;
}

sdr_qp* sdr_qp_create(sdr_context* ctx, sdr_qp_attr* attr) {
  sdr_qp* made = nullptr;
  guarded(__func__, [&] {
    auto* context = find<libsdr::Context>(HandleKind::kContext, ctx);
    if (!context || !attr) return fail("sdr_qp_create", "it needs a context and attributes");
    if (!attr->send_enable && !attr->recv_enable)
      return fail("sdr_qp_create", "neither sending nor receiving is enabled");
    const sdr::QueuePairOptions options = options_of(*attr, *context);
    auto* qp = ObjectPool<QueuePair>::get().take();
    std::string error;
    bool draining = false;
    auto create = [&](nic_model::Host& host) {
      error.clear();
      draining = false;
      const Handles::Value value = Handles::get().add(HandleKind::kQueuePair, qp);
      if (!value)
        error = kNoHandles;
      else if (context->queue_pairs.size() >= context->queue_pairs_max)
        error = "there are 2^log_max_qps queue pairs already";
      else if (!(qp->core = context->backend->create(host, options, error)))
        draining = context->backend->is_draining(options);
      if (!error.empty()) {
        Handles::get().remove(value);
        return;
      }
      qp->context = context;
      qp->sends = attr->send_enable, qp->receives = attr->recv_enable;
      qp->reliable = 0;
      context->queue_pairs.push_back(value);
      made = give<sdr_qp>(value);
    };
    // One that was destroyed just now takes the room of another until its workers are done with it: they work between
    // these calls.
    for (unsigned tries = 0; tries == 0 || (!made && draining && tries < kDrainingTries); tries++)
      context->device->call(create);
    return error.empty() ? SDR_SUCCESS + 0 : (ObjectPool<QueuePair>::get().give_back(qp), fail("sdr_qp_create", error));
  });
  return made;
}

int sdr_qp_destroy(sdr_qp* handle) {
  auto* qp = find<QueuePair>(HandleKind::kQueuePair, handle);
  if (!qp) return fail(__func__, "that is no queue pair");
  const auto value = reinterpret_cast<Handles::Value>(handle);
  if (!Handles::get().remove(value)) return fail(__func__, "it is destroyed already");
  qp->context->device->call([&](nic_model::Host& host) {
    std::erase(qp->context->queue_pairs, value);
    destroy(host, *qp);
  });
  ObjectPool<QueuePair>::get().give_back(qp);
  return SDR_SUCCESS;
}

int sdr_qp_info_size_get(sdr_qp* handle, size_t* size) {
  const auto* qp = find<QueuePair>(HandleKind::kQueuePair, handle);
  if (!qp || !size) return fail(__func__, "it needs a queue pair and where to write");
  *size = sdr::QueuePairInfo::bytes(qp->core->options());
  return SDR_SUCCESS;
}

int sdr_qp_info_get(sdr_qp* handle, void* info) {
  const auto* qp = find<QueuePair>(HandleKind::kQueuePair, handle);
  if (!qp || !info) return fail(__func__, "it needs a queue pair and where to write");
  const std::vector<std::uint8_t> bytes = qp->core->info().encode();
  std::memcpy(info, bytes.data(), bytes.size());
  return SDR_SUCCESS;
}

int sdr_qp_connect(sdr_qp* handle, void* remote_qp_info) {
  return guarded(__func__, [&] {
    auto* qp = find<QueuePair>(HandleKind::kQueuePair, handle);
    if (!qp || !remote_qp_info) return fail("sdr_qp_connect", "it needs a queue pair and the peer's info");
    // Its length stands in its head; decode() looks whether both agree.
    const auto* bytes = static_cast<const std::uint8_t*>(remote_qp_info);
    std::size_t length = 0;
    if (std::string why = sdr::QueuePairInfo::mistake_of(bytes, length); !why.empty())
      return fail("sdr_qp_connect", why);
    const auto peer = sdr::QueuePairInfo::decode({bytes, length});
    if (!peer) return fail("sdr_qp_connect", "that is no info of a queue pair");
    std::string error;
    qp->context->device->call([&](nic_model::Host& host) { error = qp->core->connect(host, *peer); });
    return error.empty() ? SDR_SUCCESS + 0 : fail("sdr_qp_connect", error);
  });
}

sdr_mr* sdr_mr_reg(sdr_context* ctx, void* addr, size_t length, sdr_access_flags flags) {
  sdr_mr* made = nullptr;
  guarded(__func__, [&] {
    auto* context = find<libsdr::Context>(HandleKind::kContext, ctx);
    if (!context || !addr || length == 0 || (flags & ~SDR_ACCESS_REMOTE_WRITE))
      return fail("sdr_mr_reg", "it needs a context, memory of at least a byte, and flags that there are");
    auto* memory = ObjectPool<Memory>::get().take();
    memory->context = context;
    const Handles::Value value = Handles::get().add(HandleKind::kMemory, memory);
    context->device->call([&](nic_model::Host&) {
      memory->key = value ? context->backend->add_memory(addr, length, flags & SDR_ACCESS_REMOTE_WRITE) : 0;
      if (!memory->key) return;
      context->memory.push_back(value);
      made = give<sdr_mr>(value);
    });
    if (made) return SDR_SUCCESS + 0;
    Handles::get().remove(value);
    ObjectPool<Memory>::get().give_back(memory);
    return fail("sdr_mr_reg", value ? "the NIC has no more memory keys" : kNoHandles);
  });
  return made;
}

int sdr_mr_dereg(sdr_mr* mr) {
  auto* memory = find<Memory>(HandleKind::kMemory, mr);
  if (!memory) return fail(__func__, "that is no memory");
  const auto value = reinterpret_cast<Handles::Value>(mr);
  if (!Handles::get().remove(value)) return fail(__func__, "it is deregistered already");
  memory->context->device->call([&](nic_model::Host&) {
    std::erase(memory->context->memory, value);
    memory->context->backend->remove_memory(memory->key);
  });
  ObjectPool<Memory>::get().give_back(memory);
  return SDR_SUCCESS;
}

int sdr_mr_lkey_get(sdr_mr* mr, uint32_t* lkey) {
  const auto* memory = find<Memory>(HandleKind::kMemory, mr);
  if (!memory || !lkey) return fail(__func__, "it needs memory and where to write");
  *lkey = memory->key;
  return SDR_SUCCESS;
}

int sdr_mr_rkey_get(sdr_mr* mr, uint32_t* rkey) {
  const auto* memory = find<Memory>(HandleKind::kMemory, mr);
  if (!memory || !rkey) return fail(__func__, "it needs memory and where to write");
  *rkey = memory->key;
  return SDR_SUCCESS;
}
}
