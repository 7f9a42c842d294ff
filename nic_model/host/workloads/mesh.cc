// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/mesh.h"

#include <fmt/format.h>

#include <algorithm>

#include "nic_model/host/workloads/mesh_endpoint.h"

namespace rocebox::nic_model {
namespace {

// Memory without bytes, as large as anybody wants: each sender has a part of it.
constexpr std::uint64_t kPartBytes = std::uint64_t{1} << 44;

}  // namespace

Mesh::Mesh(std::span<const WorkloadHost> hosts, const MeshOptions& options, OnReceived on_received, OnFailed on_failed)
    : options_(options), on_received_(std::move(on_received)), on_failed_(std::move(on_failed)) {
  for (const WorkloadHost& host : hosts)
    endpoints_.push_back(std::make_unique<Endpoint>(*this, static_cast<unsigned>(endpoints_.size()), host));
}

Mesh::~Mesh() = default;

void Mesh::call(unsigned host, Nanos at, std::function<void(Nanos now)> what) {
  endpoints_[host]->call(at, std::move(what));
}

Mesh::Connection& Mesh::make_connection(unsigned source, unsigned destination, Pair& of) {
  Connection& c = *of.connections.emplace_back(std::make_unique<Connection>());
  c.source = source;
  c.destination = destination;
  c.number = static_cast<std::uint32_t>(by_number_.size());
  by_number_.push_back(&c);
  options_.rdma_cm ? connect_by_cm(c) : connect_by_call(c);
  return c;
}

// What its sender knows decides: the receiver may be ahead of it, or behind.
Mesh::Connection& Mesh::connection_for_one_more(unsigned source, unsigned destination, Pair& of) {
  const auto idle = std::ranges::find_if(of.connections, [](const auto& one) { return one->is_idle(); });
  if (idle != of.connections.end()) return **idle;
  if (of.connections.size() < static_cast<std::size_t>(options_.connections))
    return make_connection(source, destination, of);
  return **std::ranges::min_element(of.connections, {},
                                    [](const auto& one) { return std::pair(one->failed, one->waiting.size()); });
}

// Both hosts know of each other as by a side channel; each then moves its own queue pair in its own call.
void Mesh::connect_by_call(Connection& c) {
  Endpoint& near = *endpoints_[c.source];
  Endpoint& far = *endpoints_[c.destination];
  far.run([&c, &near, &far, this](Host& host) {
    c.far = far.make_qp();
    c.far_psn = static_cast<std::uint32_t>(host.random()) & roce::kPsnMask;
    near.run([&c, &near, &far, this](Host& own) {
      c.near = near.make_qp();
      c.near_psn = static_cast<std::uint32_t>(own.random()) & roce::kPsnMask;
      near.connect(own, *c.near, c.near_psn, *c.far, c.far_psn, far.host());
      far.run([&c, &near, &far, this](Host& other) {
        far.connect(other, *c.far, c.far_psn, *c.near, c.near_psn, near.host());
        near.run([&c, this](Host& again) { became_ready(again, c); });
      });
    });
  });
}

// The far host listens before the near one asks.
void Mesh::connect_by_cm(Connection& c) {
  Endpoint& near = *endpoints_[c.source];
  Endpoint& far = *endpoints_[c.destination];
  far.run([&c, &near, &far](Host&) { near.run([&c, &near, &far](Host& host) { near.connect_by_cm(host, c, far); }); });
}

void Mesh::became_ready(Host& host, Connection& c) {
  c.ready = true;
  ready_++;
  post(host, c);
  if (!c.is_awaited || --awaited_ > 0) return;
  failed_ > 0 ? look_whether_given_up(host.now()) : when_connected_(host.now());
}

const std::string& Mesh::name(unsigned host) const { return endpoints_[host]->name(); }

void Mesh::refused(Host& host, Connection& c, const char* why) {
  failed_++;
  if (not_connected_.empty())
    not_connected_ = fmt::format("no connection from `{}` to `{}`: {}", name(c.source), name(c.destination), why);
  if (c.is_awaited) awaited_--;  // that others come to be there is not waited for
  lose(c, host.now());
}

void Mesh::fail(Host& host, Connection& c, ibv_wc_status status) {
  if (status != IBV_WC_WR_FLUSH_ERR || !c.failed) failed_++;
  if (c.failed) return;
  c.status = status;
  if (first_failure_.empty()) first_failure_ = failed_pair_text(name(c.source), *c.near, name(c.destination), status);
  lose(c, host.now());
}

void Mesh::lose(Connection& c, Nanos now) {
  c.failed = true;
  lost_ += c.unfinished;
  look_whether_given_up(now);
}

std::string Mesh::error() const {
  if (!not_connected_.empty() || failed_ == 0) return not_connected_;
  return failures_text(failed_, "queue pair", first_failure_);
}

void Mesh::connect_all(std::span<const std::pair<unsigned, unsigned>> pairs, std::function<void(Nanos now)> then) {
  when_connected_ = std::move(then);
  for (const auto& [source, destination] : pairs) {
    Pair& pair = pairs_[{source, destination}];
    Connection& c = pair.connections.empty() ? make_connection(source, destination, pair) : *pair.connections.front();
    if (c.ready || c.is_awaited) continue;
    c.is_awaited = true;
    awaited_++;
  }
}

std::size_t Mesh::transfer(unsigned source, unsigned destination, std::uint64_t bytes, Nanos now) {
  Pair& pair = pairs_[{source, destination}];
  Connection& c = connection_for_one_more(source, destination, pair);
  const std::size_t number = flows_.size();
  flows_.push_back({source, destination, bytes, now, kNever});
  places_.push_back(source * kPartBytes + pair.next_place);
  by_flow_.push_back(&c);
  pair.next_place += bytes;
  unfinished_++;
  c.unfinished++;
  if (c.failed) lost_++;
  c.waiting.push_back({number});
  if (c.ready) endpoints_[source]->run([this, &c](Host& host) { post(host, c); });
  return number;
}

void Mesh::post(Host& host, Connection& c) {
  while (!c.waiting.empty()) {
    Connection::Waiting& first = c.waiting.front();
    const FlowRecord& flow = flows_[first.number];
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(options_.chunk, flow.bytes - first.sent));
    const bool is_last = first.sent + bytes == flow.bytes;
    ibv_sge sge{first.sent, bytes, endpoints_[c.source]->key()};
    ibv_send_wr request{};
    request.wr_id = reinterpret_cast<std::uintptr_t>(&c);
    request.opcode = is_last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    request.sg_list = &sge;
    request.num_sge = bytes ? 1 : 0;
    request.send_flags = IBV_SEND_SIGNALED;
    request.imm_data = htobe32(static_cast<std::uint32_t>(first.number));
    request.wr.rdma.remote_addr = places_[first.number] + first.sent;
    request.wr.rdma.rkey = endpoints_[c.destination]->key();
    if (host.post_send(*c.near, &request, nullptr) != 0) return;  // full: when a work request is complete
    c.under_way++;
    first.sent += bytes;
    if (is_last) c.waiting.pop_front();
  }
}

void Mesh::received(unsigned host, std::uint32_t number, Nanos now) {
  // Where nobody checks ICRCs an immediate may be any number.
  if (number >= flows_.size() || flows_[number].destination != host || flows_[number].end != kNever) {
    unexpected_++;
    return;
  }
  FlowRecord& flow = flows_[number];
  if (!endpoints_[host]->holds(places_[number], flow.bytes)) misplaced_++;
  flow.end = now;
  bytes_received_ += flow.bytes;
  unfinished_--;
  Connection& by = *by_flow_[number];
  by.unfinished--;
  if (by.failed) lost_--;  // it was on its way still
  on_received_(number, now);
}

double Mesh::bytes_placed() const {
  double sum = 0;
  for (const auto& endpoint : endpoints_) sum += static_cast<double>(endpoint->bytes_placed());
  return sum;
}

std::uint64_t Mesh::bytes_placed(std::size_t number) const {
  const FlowRecord& flow = flows_[number];
  return endpoints_[flow.destination]->bytes_placed(places_[number], flow.bytes);
}

Progress Mesh::progress() const {
  Progress sum{bytes_received_ + flows_.size() + failed_};
  for (const auto& endpoint : endpoints_) sum.add(endpoint->progress());
  return sum;
}

void Mesh::explain_waiting(Report& report, unsigned lines) const {
  if (awaited_ > 0) report.count("connections_awaited", static_cast<std::int64_t>(awaited_));
  if (failed_ > 0) report.text("error", error());
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < flows_.size() && open.size() < lines; i++)
    if (flows_[i].end == kNever) open.push_back(i);
  report.table("unfinished", open.size(), [&](Report& row, std::size_t i) {
    const FlowRecord& flow = flows_[open[i]];
    const Connection& by = *by_flow_[open[i]];
    row.text("source", name(flow.source));
    row.text("destination", name(flow.destination));
    row.count("bytes", static_cast<std::int64_t>(flow.bytes));
    const Qp* qp = by.near;
    row.count("unacknowledged_psn", qp ? std::int64_t{qp->requester.unacknowledged_psn()} : -1);
    row.count("qpn", qp ? std::int64_t{qp->number()} : -1);
    row.text("state", !qp || !by.ready ? "not connected" : waiting_state(*qp));
    row.text("status", failed_status(by.status));
  });
}

}  // namespace rocebox::nic_model
