// SPDX-License-Identifier: BSD-3-Clause
// One case of verbs_check: so many messages of one verb over one transport, and what each side of it does and finds.
// README.md has the messages by which both sides agree.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "nic_model/host/host.h"
#include "nic_model/host/workloads/recovery_options.h"

namespace rocebox::nic_model::check {

enum class Transport : std::uint8_t { kRc, kUc, kUd };
enum class Verb : std::uint8_t { kSend, kSendWithImm, kWrite, kWriteWithImm, kRead, kFetchAdd, kCompareSwap };
inline constexpr std::string_view kTransports[] = {"RC", "UC", "UD"};
inline constexpr std::string_view kVerbs[] = {"send", "send_with_imm", "write",       "write_with_imm",
                                              "read", "fetch_add",     "compare_swap"};

inline constexpr std::uint32_t kBytesMin = 4, kBytesMax = 1 << 20;  // from the number with which a message begins
inline constexpr std::uint32_t kMessagesMax = 4096;
inline constexpr std::uint64_t kCaseBytesMax = 64 << 20;  // so much memory a stranger may have a server take

struct Case {
  Transport transport = Transport::kRc;
  Verb verb = Verb::kSend;
  bool server_requests = false;
  std::uint32_t size = 0, messages = 0, mtu = 0;
  roce::IpAddress group{};  ///< of datagrams to a group; zeros: to the peer

  bool is_atomic() const { return verb == Verb::kFetchAdd || verb == Verb::kCompareSwap; }
  bool is_send() const { return verb <= Verb::kSendWithImm; }
  bool has_imm() const { return verb == Verb::kSendWithImm || verb == Verb::kWriteWithImm; }
  /// Whether each message takes a receive request.
  bool takes_receive() const { return is_send() || has_imm(); }
  /// Whether the requester gets the data, and so finds out whether they are right.
  bool requester_verifies() const { return verb >= Verb::kRead; }
  bool has_group() const { return group != roce::IpAddress{}; }
  /// Whether the transport has the verb.
  bool exists() const {
    return transport == Transport::kRc || is_send() || (transport == Transport::kUc && verb <= Verb::kWriteWithImm);
  }
  /// Whether it can be done: what a stranger asks for.
  bool is_possible() const;
};

/// What both sides send each other over the control connection.
struct Message {
  enum Kind : std::uint32_t { kCase = 1, kReady, kGo, kDone, kResult };
  std::uint8_t magic[8];
  roce::Be32 kind, number;                                           // of the case, from 0
  roce::Be32 transport, verb, server_requests, size, messages, mtu;  // the case
  roce::Be32 qpn, psn, rkey, status;                                 // the sender's; status: an ibv_wc_status
  roce::Be64 address;                                                // of its first message
  std::uint8_t group[16];
  roce::Be32 completed, whole, partial, missing, wrong, reserved;  // what it has found
};
inline constexpr std::array<std::uint8_t, 8> kMagic = {'v', 'r', 'b', 'c', 'h', 'e', 'c', 'k'};
static_assert(sizeof(Message) == 104);

/// What came of a case's messages at who verifies them.
struct Counts {
  std::uint32_t whole = 0;    ///< came as they were sent
  std::uint32_t partial = 0;  ///< WRITEs of which some packets came, and nothing else
  std::uint32_t missing = 0;  ///< did not come
  std::uint32_t wrong = 0;    ///< with a byte, length, number or order that was not sent
};

class Side {
 public:
  Side(const Case& which, std::uint32_t number, bool requests) : case_(which), number_(number), requests_(requests) {}

  /// Memory, queue pair, receive requests. False: too many queue pairs or regions.
  bool prepare(Host& host, CompletionQueue& cq, const RecoveryOptions& recovery);
  /// The own queue pair and memory, for the other side.
  void describe(Message& message) const;
  /// To RTS, towards who sent `there`. 0, or the errno of what failed.
  int connect(Host& host, const roce::IpAddress& remote, const Message& there);
  /// Requester: posts as many messages as may be under way.
  void post(Host& host);
  /// A completion of this queue pair.
  void on_wc(Host& host, const ibv_wc& completion);
  void release(Host& host);

  const Case& which() const { return case_; }
  std::uint32_t number() const { return number_; }
  bool requests() const { return requests_; }
  /// Far from those of the cases before, of which a late packet may still come; each sixteenth case's go round. The
  /// guest program's verbs_check has the same.
  std::uint32_t first_psn() const { return (0xFFFFE0 + number_ * 0x100000) & 0xFFFFFF; }
  std::uint32_t qpn() const { return qp_->number(); }
  std::uint32_t completed() const { return completed_; }
  ibv_wc_status status() const { return status_; }
  /// Requester: nothing is under way any more.
  bool is_done() const { return completed_ == case_.messages || status_ != IBV_WC_SUCCESS; }
  /// Responder: all that can come has come.
  bool is_complete() const;
  Counts counts() const;

 private:
  enum class Found : std::uint8_t { kWhole, kPartial, kMissing, kWrong };
  std::uint64_t stride() const;
  std::uint8_t* data(std::uint64_t slot) { return memory_.data() + slot * stride() + kHeadBytes; }
  const std::uint8_t* data(std::uint64_t slot) const { return memory_.data() + slot * stride() + kHeadBytes; }
  std::uint64_t address(std::uint64_t slot) const { return mapping_.address + slot * stride() + kHeadBytes; }
  std::uint8_t expected(std::uint32_t message, std::uint32_t offset) const;
  Found find(std::uint64_t slot, std::uint32_t message) const;
  bool init(Host& host);
  int connect_datagrams(Host& host, const roce::IpAddress& remote, const Message& there);
  void on_receive(const ibv_wc& completion);
  void on_answer(std::uint64_t message);

  static constexpr std::uint32_t kHeadBytes = 40;  // before each message: room for a GRH
  const Case case_;
  const std::uint32_t number_;
  const bool requests_;
  Qp* qp_ = nullptr;
  Mapping mapping_;
  std::vector<std::uint8_t> memory_;
  AddressHandle handle_;
  std::uint64_t there_address_ = 0;
  std::uint32_t there_rkey_ = 0;
  std::uint32_t posted_ = 0, completed_ = 0, whole_ = 0, wrong_ = 0;
  std::int64_t last_ = -1;  // number of the message received last
  std::vector<bool> seen_;  // by number
  ibv_wc_status status_ = IBV_WC_SUCCESS;
};

}  // namespace rocebox::nic_model::check
