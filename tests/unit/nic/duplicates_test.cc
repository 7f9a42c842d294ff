// SPDX-License-Identifier: BSD-3-Clause
// Duplicate READs and atomics when PSNs have gone round since an older one, which is still remembered and had the same.
#include "tests/unit/nic/forged_kit.h"

namespace rocebox::test::forged {
namespace {

// Its PSNs go round by READs of 2 GiB each; at so low a rate hardly anything of the responses leaves.
class Rounds : public Victim {
 public:
  Rounds() : Victim(IBV_QPT_RC, "rate: 1Mbps") {
    box.on(1, [&](nic_model::Host& host) { null = host.memory().add_null(box.sides[1].pd); });
  }
  ~Rounds() { box.disconnect(); }
  void read(std::uint32_t psn, std::uint64_t bytes) {
    PacketSpec spec = good();
    spec.opcode = IBV_OPCODE_RC_RDMA_READ_REQUEST;
    spec.psn = psn & roce::kPsnMask;
    spec.payload = {};
    spec.rkey = null;
    spec.dma_length = static_cast<std::uint32_t>(bytes);
    inject(build(spec));
  }
  void fetch_add(std::uint32_t psn) {
    PacketSpec spec = good();
    spec.opcode = IBV_OPCODE_RC_FETCH_ADD;
    spec.psn = psn & roce::kPsnMask;
    spec.payload = {};
    spec.swap_add = 5;
    inject(build(spec));
  }
  // From `psn` on to the one before it.
  void go_round(std::uint32_t psn) {
    constexpr std::uint64_t kLong = std::uint64_t{1} << 31, kPsns = kLong / kMtu;
    constexpr unsigned kReads = (1u << 24) / kPsns;
    for (unsigned i = 0; i < kReads; i++)
      read(psn + i * static_cast<std::uint32_t>(kPsns), i + 1 < kReads ? kLong : kLong - kMtu);
    ASSERT_EQ(box.sides[1].qp->responder.expected_psn(), (psn - 1) & roce::kPsnMask);
  }
  std::uint64_t answered() const { return box.count(1, "delivered"); }
  std::uint32_t null = 0;
};

TEST(Duplicates, AreOfTheNewestRequestThatHadThePsn) {
  Rounds rounds;
  rounds.read(kPsn, 8);
  rounds.go_round(kPsn + 1);
  rounds.fetch_add(kPsn);
  const std::uint64_t before = rounds.answered();
  rounds.fetch_add(kPsn);
  EXPECT_EQ(rounds.answered(), before + 1) << "the READ that had this PSN a round before is not in its way";
  EXPECT_EQ(rounds.box.count(1, "duplicate_request"), 1u);
  EXPECT_EQ(rounds.box.count(1, "rx_atomic_requests"), 1u) << "it is not executed again";
  rounds.read(kPsn, 8);
  EXPECT_EQ(rounds.answered(), before + 1) << "the READ is long over";
  EXPECT_EQ(rounds.box.count(1, "drop_duplicate"), 1u);
  // What came before it in this round can be asked for again.
  rounds.read(kPsn - (1u << 21) + 1, kMtu);
  EXPECT_EQ(rounds.answered(), before + 2) << "the last READ's beginning";
}

TEST(Duplicates, AnAtomicOfARoundBeforeIsNotAnsweredForARead) {
  Rounds rounds;
  rounds.fetch_add(kPsn);
  rounds.go_round(kPsn + 1);
  rounds.read(kPsn, 8);
  const std::uint64_t before = rounds.answered();
  rounds.fetch_add(kPsn);
  EXPECT_EQ(rounds.answered(), before);
  EXPECT_EQ(rounds.box.count(1, "drop_duplicate"), 1u);
}

}  // namespace
}  // namespace rocebox::test::forged
