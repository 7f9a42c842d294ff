// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/host/join.h"

#include <algorithm>
#include <cstring>

#include "kernels/allgather/host/rank.h"
#include "runtime/roce/mad.h"

namespace rocebox::allgather {
namespace {

constexpr Nanos kAskAgain = 100 * kMillisecond;  // who does not listen yet
constexpr std::uint8_t kReadsMax = 16;           // READs of a connection under way

// Private data of a request.
struct Hello {
  std::array<char, 8> magic = {'r', 'b', 'x', 'g', 't', 'h', 'r', '1'};
  roce::Be64 agreed{};
  roce::Be32 rank{};  ///< who asks
  roce::Be16 communicator{};
  std::uint8_t link = 0;  ///< LinkTo, of who is asked
  std::uint8_t reserved = 0;
};
static_assert(sizeof(Hello) == 24);

// Private data of a rejection.
enum class Why : std::uint8_t { kNotNow, kDisagrees };

}  // namespace

template <class Each>
void Join::each_link(Each&& each) const {
  for (unsigned c = 0; c < rank_.communicators(); c++)
    for (const auto& [whose, link] : rank_.communicator(c).links()) each(*link);
}

// The ring's connections are asked for by the left one, the barrier's by the lower rank.
bool Join::is_active(const Link& link) const {
  return link.to() == LinkTo::kRight || (link.to() == LinkTo::kBarrier && rank_.number() < link.peer());
}

void Join::begin(std::uint32_t program) {
  program_ = program;
  const TeamOptions& options = rank_.team().options();
  rank_.team().member(rank_.number()).qpns = rank_.sending_qpns();
  deadline_ = rank_.host().now() + options.join_timeout;
  const auto port = static_cast<std::uint16_t>(options.port);
  if (rank_.host().connections().listen(program, nic_model::PortSpace::kTcp, port) != 0)
    return fail("RDMA CM's port " + std::to_string(port) + " is taken on its host: `port` gives it another one");
  on_timer();
}

void Join::on_timer() {
  const Nanos now = rank_.host().now();
  if (state_ == State::kLeaves && now >= deadline_) return end();
  if (state_ != State::kConnects && state_ != State::kTellsMembers) return;
  if (now >= deadline_) return fail(missing());
  connect_missing();
  if (state_ != State::kFailed) rank_.arm_join(std::min(deadline_, now + kAskAgain));
}

void Join::connect_missing() {
  const TeamOptions& options = rank_.team().options();
  each_link([&](Link& link) {
    if (link.is_connected || link.is_asked || !is_active(link)) return;
    Hello hello;
    hello.agreed = rank_.team().agreed();
    hello.rank = rank_.number();
    hello.communicator = static_cast<std::uint16_t>(link.communicator());
    hello.link = static_cast<std::uint8_t>(other_end(link.to()));
    nic_model::ConnectionOptions with;
    with.private_data = {reinterpret_cast<const std::uint8_t*>(&hello), sizeof hello};
    with.responder_resources = with.initiator_depth = kReadsMax;
    with.path_mtu = static_cast<std::uint32_t>(options.mtu);
    with.retry_count = static_cast<std::uint8_t>(options.retry_cnt);
    with.ack_timeout = static_cast<std::uint8_t>(options.timeout_exponent);
    with.min_rnr_timer = 1;
    nic_model::ConnectionId id = 0;
    // Where there is no room for more of them now the next turn tries again.
    if (rank_.host().connections().connect(program_, rank_.team().member(link.peer()).address,
                                           nic_model::PortSpace::kTcp, static_cast<std::uint16_t>(options.port),
                                           link.qp, with, id) != 0)
      return;
    link.is_asked = true;
    connections_[id] = &link;
  });
}

void Join::accept(const nic_model::ConnectionEvent& event) {
  nic_model::Connections& connections = rank_.host().connections();
  const auto reject = [&](Why why) {
    const auto byte = static_cast<std::uint8_t>(why);
    connections.reject(event.id, {&byte, 1});
  };
  Hello hello;
  const Hello plain;
  if (state_ == State::kFailed) return reject(Why::kNotNow);
  if (event.private_data_bytes < sizeof hello) return reject(Why::kDisagrees);
  std::memcpy(&hello, event.private_data.data(), sizeof hello);
  const auto peer = static_cast<unsigned>(hello.rank);
  if (hello.magic != plain.magic || peer >= rank_.team().ranks() || event.remote != rank_.team().member(peer).address)
    return reject(Why::kDisagrees);
  if (hello.agreed.get() != rank_.team().agreed()) {
    disagrees_ = peer;
    return reject(Why::kDisagrees);
  }
  Link* wanted = nullptr;
  each_link([&](Link& link) {
    if (link.communicator() == static_cast<unsigned>(hello.communicator) &&
        static_cast<std::uint8_t>(link.to()) == hello.link && link.peer() == peer)
      wanted = &link;
  });
  if (!wanted || is_active(*wanted) || wanted->is_asked || wanted->is_connected) return reject(Why::kNotNow);
  const TeamOptions& options = rank_.team().options();
  nic_model::ConnectionOptions with;
  with.responder_resources = with.initiator_depth = kReadsMax;
  with.min_rnr_timer = 1;
  with.ack_timeout = static_cast<std::uint8_t>(options.timeout_exponent);
  if (connections.accept(event.id, *wanted->qp, with) != 0) return reject(Why::kNotNow);
  wanted->is_asked = true;
  connections_[event.id] = wanted;
}

void Join::on_event(const nic_model::ConnectionEvent& event) {
  using enum nic_model::ConnectionEventType;
  if (event.type == kConnectRequest) return accept(event);
  const auto found = connections_.find(event.id);
  if (found == connections_.end()) return;
  Link& link = *found->second;
  if (event.type == kEstablished) {
    if (!link.is_connected) on_connected(link);
    return;
  }
  if (event.type == kDisconnected) return;  // of its queue pair work requests tell
  connections_.erase(found);
  if (link.is_connected) return;
  // It is asked for again, or may ask again.
  link.is_asked = false;
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RESET;
  rank_.host().modify_qp(*link.qp, a, IBV_QP_STATE);
  rank_.team().options().recovery.apply(rank_.host(), *link.qp);  // it has its NIC's again
  if (event.type == kRejected && event.private_data_bytes > 0 &&
      event.status == static_cast<int>(roce::CmReject::kConsumer) &&
      event.private_data[0] == static_cast<std::uint8_t>(Why::kDisagrees)) {
    disagrees_ = link.peer();
    fail(missing());
  }
}

void Join::on_connected(Link& link) {
  link.is_connected = true;
  rank_.team().advanced();
  link.resume(rank_.host());
  bool all = true;
  each_link([&](const Link& one) { all = all && one.is_connected; });
  if (!all || state_ != State::kConnects) return;
  state_ = State::kTellsMembers;
  const std::vector<std::uint32_t>& own = rank_.team().member(rank_.number()).qpns;
  const auto subgroups = static_cast<std::uint32_t>(rank_.team().options().subgroups);
  for (std::uint32_t i = 0; i < own.size(); i++) {
    ControlMessage message;
    message.type = static_cast<std::uint8_t>(MessageType::kMember);
    message.communicator = static_cast<std::uint16_t>(i / subgroups);
    message.sequence = i % subgroups;
    message.argument = rank_.number();
    message.rkey = own[i];
    send_right(message);
  }
  look_at_members();
}

void Join::send_right(const ControlMessage& message) {
  Communicator& communicator = rank_.communicator(static_cast<unsigned>(message.communicator));
  Link::Work work;
  work.message = message;
  communicator.link(LinkTo::kRight, communicator.right()).post(rank_.host(), work, true);
}

void Join::on_message(Link& link, const ControlMessage& message) {
  const auto communicator = static_cast<unsigned>(message.communicator);
  const auto subgroup = static_cast<std::uint32_t>(message.sequence);
  const auto whose = static_cast<unsigned>(message.argument);
  Team& team = rank_.team();
  if (communicator != link.communicator()) {
    rank_.count.bad_messages++;
    return;
  }
  if (message.type == static_cast<std::uint8_t>(MessageType::kGoodbye)) {
    link.has_goodbye = true;
    return look_at_goodbyes();
  }
  const auto subgroups = static_cast<std::uint32_t>(team.options().subgroups);
  std::uint32_t* place = link.to() == LinkTo::kLeft && whose < team.ranks() && subgroup < subgroups
                             ? &team.member(whose).qpns[communicator * subgroups + subgroup]
                             : nullptr;
  if (!place || *place != 0 || static_cast<std::uint32_t>(message.rkey) == 0) {
    rank_.count.bad_messages++;
    return;
  }
  *place = static_cast<std::uint32_t>(message.rkey);
  team.advanced();
  if (rank_.communicator(communicator).right() != whose) send_right(message);
  look_at_members();
}

void Join::look_at_members() {
  if (state_ != State::kTellsMembers) return;
  for (unsigned rank = 0; rank < rank_.team().ranks(); rank++)
    if (std::ranges::count(rank_.team().member(rank).qpns, 0u) > 0) return;
  state_ = State::kRuns;
  rank_.cancel_join();
  for (unsigned c = 0; c < rank_.communicators(); c++) rank_.communicator(c).run();
  rank_.team().application().on_connected(rank_.host().now());
}

void Join::leave() {
  if (state_ != State::kRuns) return;
  state_ = State::kLeaves;
  deadline_ = rank_.host().now() + rank_.team().options().join_timeout;
  rank_.arm_join(deadline_);
  each_link([&](Link& link) {
    Link::Work work;
    work.message.type = static_cast<std::uint8_t>(MessageType::kGoodbye);
    work.message.communicator = static_cast<std::uint16_t>(link.communicator());
    link.post(rank_.host(), work, true);
  });
  look_at_goodbyes();
}

bool Join::on_done(Link& link, const Link::Work& work) {
  if (work.is_read || work.message.type != static_cast<std::uint8_t>(MessageType::kGoodbye)) return false;
  link.said_goodbye = true;
  look_at_goodbyes();
  return true;
}

// Who has said goodbye may be gone before its last acknowledgement has come.
bool Join::on_failure(Link& link) {
  if (state_ == State::kLeft) return true;
  if (state_ != State::kLeaves || !link.has_goodbye) return false;
  link.said_goodbye = true;
  look_at_goodbyes();
  return true;
}

void Join::look_at_goodbyes() {
  if (state_ != State::kLeaves) return;
  bool all = true;
  each_link([&](const Link& link) {
    all = all && ((link.has_goodbye && link.said_goodbye) || rank_.communicator(link.communicator()).has_failed());
  });
  if (all) end();
}

// Nothing holds the process any more. Its connections end by name, so that a peer whose last acknowledgement was lost
// need not try again as often as it may.
void Join::end() {
  each_link([&](const Link& link) { rank_.count.goodbyes_missing += !link.has_goodbye; });
  state_ = State::kLeft;
  rank_.cancel_join();
  for (const auto& [id, link] : connections_) rank_.host().connections().disconnect(id);
  rank_.team().application().on_left(rank_.host().now());
}

void Join::fail(const std::string& why) {
  state_ = State::kFailed;
  rank_.cancel_join();
  rank_.team().application().on_unconnected(why, rank_.host().now());
}

// The ranks that have not joined, the first of them by name.
std::string Join::missing() const {
  const auto name = [&](unsigned rank) {
    return "rank " + std::to_string(rank) + " (" + roce::address_text(rank_.team().member(rank).address) + ")";
  };
  if (disagrees_)
    return name(*disagrees_) + " has other options: all ranks need the same, but for where their NICs are";
  std::string text;
  each_link([&](const Link& link) {
    if (text.empty() && !link.is_connected) text = name(link.peer()) + " has not joined";
  });
  return text.empty() ? "a rank beyond the neighbours has not joined" : text;
}

void Join::explain_waiting(Report& report) const {
  if (state_ == State::kConnects || state_ == State::kTellsMembers) report.text("waits_for", missing());
  if (state_ == State::kLeaves) report.text("waits_for", "the others' goodbyes");
}

}  // namespace rocebox::allgather
