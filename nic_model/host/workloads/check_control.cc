// SPDX-License-Identifier: BSD-3-Clause
// The messages of verbs_check's control connection: the client goes from case to case, the server follows.
#include <algorithm>

#include "nic_model/host/workloads/check_program.h"

namespace rocebox::nic_model::check {
namespace {

std::uint32_t word(const roce::Be32& value) { return static_cast<std::uint32_t>(value); }

}  // namespace

void VerbsCheck::on_wc(Host& host, const ibv_wc& wc) {
  const auto found = std::ranges::find_if(sessions_, [&](const auto& session) {
    return session->qp->number() == wc.qp_num || (session->side && session->side->qpn() == wc.qp_num);
  });
  if (found == sessions_.end()) return;
  Session& session = **found;
  if (session.is_over) return;
  steps_++;
  if (session.qp->number() != wc.qp_num) return on_side(host, session, wc);
  if (wc.status == IBV_WC_WR_FLUSH_ERR) return;
  if (wc.status != IBV_WC_SUCCESS) return leave(host, session, "the control connection has failed");
  if (wc.opcode != IBV_WC_RECV) {
    session.acknowledged++;
    if (config_.address && !session.side) begin(host, session);
    return;
  }
  const Message message = session.memory[wc.wr_id];
  if (wc.byte_len != sizeof(Message) || !std::ranges::equal(message.magic, kMagic))
    return leave(host, session, "a message that is none of verbs_check came");
  post_receive(host, session, wc.wr_id);
  on_message(host, session, message);
}

void VerbsCheck::on_side(Host& host, Session& session, const ibv_wc& wc) {
  Side& side = *session.side;
  const bool was_done = side.is_done();
  side.on_wc(host, wc);
  if (side.requests()) {
    if (!was_done && side.is_done()) send(host, session, compose(session, Message::kDone));
  } else if (session.settle_steps > 0 && side.is_complete()) {
    settle(host, session);
  }
}

void VerbsCheck::on_message(Host& host, Session& session, const Message& message) {
  const auto kind = static_cast<std::uint32_t>(message.kind);
  if (kind == Message::kCase && !config_.address && !session.side) return on_case(host, session, message);
  Side* side = session.side.get();
  if (!side || message.number != side->number()) return leave(host, session, "a message of no case that goes on came");
  if (kind == Message::kReady && config_.address) return on_ready(host, session, message);
  if (kind == Message::kGo && side->requests()) return post(host, session);
  if (kind == Message::kDone && !side->requests()) {
    session.done = message;
    session.settle_steps = kSettleSteps;
    return settle(host, session);
  }
  if (kind != Message::kResult || !side->requests()) return leave(host, session, "a message out of turn came");
  end_case(host, session, compose(session, Message::kDone), message);
}

// Client: the next case.
void VerbsCheck::begin(Host& host, Session& session) {
  if (session.next_case == cases_.size()) {
    // Not before the server has the last message: what is under way goes with the connection.
    if (session.acknowledged == session.sent) host.connections().disconnect(session.id);
    return;
  }
  const Case& which = cases_[session.next_case];
  const auto number = static_cast<std::uint32_t>(session.next_case++);
  session.side = std::make_unique<Side>(which, number, !which.server_requests);
  if (!session.side->prepare(host, *cq_, config_.recovery)) {
    session.side.reset();
    return leave(host, session, "too few queue pairs for a case");
  }
  send(host, session, compose(session, Message::kCase));
}

// Server: the client's next case.
void VerbsCheck::on_case(Host& host, Session& session, const Message& message) {
  Case which;
  which.transport = static_cast<Transport>(word(message.transport));
  which.verb = static_cast<Verb>(word(message.verb));
  which.server_requests = message.server_requests != 0;
  which.size = word(message.size);
  which.messages = word(message.messages);
  which.mtu = word(message.mtu);
  std::copy_n(message.group, which.group.size(), which.group.begin());
  const bool known =
      message.transport < std::size(kTransports) && message.verb < std::size(kVerbs) && which.is_possible();
  if (!known) return leave(host, session, "a client asks for a case that is not possible");
  session.side = std::make_unique<Side>(which, word(message.number), which.server_requests);
  if (!session.side->prepare(host, *cq_, config_.recovery)) {
    session.side.reset();
    return leave(host, session, "too few queue pairs for a case");
  }
  if (session.side->connect(host, session.remote, message) != 0)
    return leave(host, session, "a queue pair cannot be connected");
  send(host, session, compose(session, Message::kReady));
}

void VerbsCheck::on_ready(Host& host, Session& session, const Message& message) {
  if (session.side->connect(host, session.remote, message) != 0)
    return leave(host, session, "a queue pair cannot be connected");
  if (session.side->requests()) return post(host, session);
  send(host, session, compose(session, Message::kGo));
}

void VerbsCheck::post(Host& host, Session& session) {
  session.side->post(host);
  if (session.side->is_done()) send(host, session, compose(session, Message::kDone));
}

// The requester has sent all: waits for what may still be under way, and says what has come.
void VerbsCheck::settle(Host& host, Session& session) {
  if (session.settle_steps > 1 && session.done.status == IBV_WC_SUCCESS && !session.side->is_complete()) {
    session.settle_steps--;
    return host.arm_timer(program_, session.settle_timer, host.now() + config_.settle / kSettleSteps);
  }
  session.settle_steps = 0;
  const Message result = compose(session, Message::kResult);
  send(host, session, result);
  end_case(host, session, session.done, result);
}

void VerbsCheck::end_case(Host& host, Session& session, const Message& done, const Message& result) {
  Row row;
  row.which = session.side->which();
  row.completed = word(done.completed);
  row.status = static_cast<ibv_wc_status>(word(done.status));
  if (row.status == IBV_WC_SUCCESS) row.status = static_cast<ibv_wc_status>(word(result.status));
  const Message& by = row.which.requester_verifies() ? done : result;
  row.counts = {word(by.whole), word(by.partial), word(by.missing), word(by.wrong)};
  if (row.which.requester_verifies()) row.counts.wrong += word(result.wrong);  // what atomics have left
  const bool is_whole = row.counts.whole == row.which.messages && row.status == IBV_WC_SUCCESS;
  cases_done_++;
  cases_incomplete_ += !is_whole;
  wrong_ += row.counts.wrong;
  if (rows_.size() < kRowsMax) rows_.push_back(row);
  drop_side(host, session);
  if (config_.address) begin(host, session);
}

Message VerbsCheck::compose(const Session& session, Message::Kind kind) const {
  const Side& side = *session.side;
  const Case& which = side.which();
  Message m{};
  std::ranges::copy(kMagic, m.magic);
  m.kind = kind;
  m.number = side.number();
  m.transport = static_cast<unsigned>(which.transport);
  m.verb = static_cast<unsigned>(which.verb);
  m.server_requests = which.server_requests;
  m.size = which.size;
  m.messages = which.messages;
  m.mtu = which.mtu;
  m.status = side.status();
  std::copy(which.group.begin(), which.group.end(), m.group);
  side.describe(m);
  const Counts counts = side.counts();
  m.completed = side.completed();
  m.whole = counts.whole;
  m.partial = counts.partial;
  m.missing = counts.missing;
  m.wrong = counts.wrong;
  return m;
}

void VerbsCheck::post_receive(Host& host, Session& session, std::uint64_t slot) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(&session.memory[slot]), sizeof(Message), session.key};
  ibv_recv_wr request{slot, nullptr, &sge, 1};
  host.post_receive(*session.qp, &request, nullptr);
}

void VerbsCheck::send(Host& host, Session& session, const Message& message) {
  Message& place = session.memory[kControlDepth + session.sent++ % kControlDepth];
  place = message;
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(&place), sizeof place, session.key};
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  host.post_send(*session.qp, &request, nullptr);
}

}  // namespace rocebox::nic_model::check
