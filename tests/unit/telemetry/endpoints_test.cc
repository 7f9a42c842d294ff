// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/endpoints.h"

#include <gtest/gtest.h>
#include <rte_log.h>
#include <rte_os.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

// What EAL calls when its telemetry is on, which the EAL of these tests has not.
extern "C" int rte_telemetry_init(const char* runtime_dir, const char* rte_version, rte_cpuset_t* cpuset,
                                  int (*log)(std::uint32_t, std::uint32_t, const char*, ...), std::uint32_t logtype);

namespace rocebox {
namespace {

// The folder of the socket: DPDK opens one for the process, once.
const std::string& socket_folder() {
  static const std::string folder = [] {
    std::string name = (std::filesystem::temp_directory_path() / "rocebox-unit-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    static std::string kept;
    kept = name;
    static cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    std::atexit([] { std::filesystem::remove_all(kept); });
    if (rte_telemetry_init(kept.c_str(), "test", &cpus, rte_log, RTE_LOGTYPE_USER1) != 0)
      throw std::runtime_error("no telemetry");
    return name;
  }();
  return folder;
}

// A client of the socket.
class Client {
 public:
  Client() : descriptor_(socket(AF_UNIX, SOCK_SEQPACKET, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = socket_folder() + "/dpdk_telemetry.v2";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_GT(receive().size(), 10u);  // the greeting
  }
  ~Client() { close(descriptor_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Json call(const std::string& command, const std::string& parameters = "") {
    const std::string text = parameters.empty() ? command : command + "," + parameters;
    EXPECT_EQ(send(descriptor_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return Json::parse(receive())[command];
  }

 private:
  std::string receive() {
    std::string text(1 << 16, '\0');
    const ssize_t bytes = recv(descriptor_, text.data(), text.size(), 0);
    text.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
    return text;
  }
  int descriptor_;
};

TEST(Endpoints, AnswersObjectsListsAndText) {
  Endpoints endpoints;
  Json answer;
  std::string heard;
  endpoints.add("/rocebox/test", "For this test. Parameters: any", [&](const std::string& parameters) {
    heard = parameters;
    return answer;
  });
  Client client;
  answer = {{"zero", 0},
            {"most", UINT64_MAX},
            {"below", -5},
            {"far_below", -5'000'000'000},
            {"share", 0.25},
            {"yes", true},
            {"text", "a \"b\" \\ c"},
            {"empty", ""},
            {"nested", {{"x", 1}, {"deeper", {{"y", "z"}, {"list", {1, 2}}}}}},
            {"numbers", {1, 2, 3}},
            {"words", {"one", "two"}},
            {"none", Json::array()},
            {"nothing", Json::object()},
            {"rows", {{{"a", 1}}, {{"a", 2}}}},
            {"odd key.", 1}};
  Json expected = answer;
  expected["far_below"] = "-5000000000";
  expected["share"] = "0.25";
  expected["yes"] = 1;
  expected["rows"] = {{"0", {{"a", 1}}}, {"1", {{"a", 2}}}};
  expected.erase("odd key.");
  expected["odd_key_"] = 1;
  EXPECT_EQ(client.call("/rocebox/test"), expected);
  EXPECT_EQ(heard, "");
  answer = {"bump.a", "bump.z"};
  EXPECT_EQ(client.call("/rocebox/test", "one,two=3"), answer);
  EXPECT_EQ(heard, "one,two=3");
  answer = std::string(8000, 'x');
  EXPECT_EQ(client.call("/rocebox/test"), answer);
}

TEST(Endpoints, SaysWhatDpdkCannotHold) {
  Endpoints endpoints;
  Json answer;
  endpoints.add("/rocebox/test", "For this test", [&](const std::string&) { return answer; });
  Client client;
  for (int i = 0; i < 257; i++) answer[std::to_string(i)] = i;
  EXPECT_NE(client.call("/rocebox/test")["error"].get<std::string>().find("257 entries"), std::string::npos);
  answer.erase("256");
  EXPECT_EQ(client.call("/rocebox/test"), answer);
  answer = Json::object();
  for (int i = 0; i < 150; i++) answer[std::to_string(i)] = std::string(120, 'x');
  EXPECT_NE(client.call("/rocebox/test")["error"].get<std::string>().find("DPDK's telemetry sends"), std::string::npos);
  answer = {{"long", std::string(126, 'x') + "\u00e9\u00e9"}};
  EXPECT_EQ(client.call("/rocebox/test")["long"], std::string(124, 'x') + "...");
}

TEST(Endpoints, AThrownMistakeIsAnAnswer) {
  Endpoints endpoints;
  endpoints.add("/rocebox/test", "For this test", [&](const std::string&) -> Json { throw std::runtime_error("no"); });
  EXPECT_EQ(Client().call("/rocebox/test"), Json({{"error", "no"}}));
}

TEST(Endpoints, EndWithTheirOwner) {
  {
    Endpoints endpoints;
    endpoints.add("/rocebox/test", "For this test", [&](const std::string&) { return Json("alive"); });
    EXPECT_EQ(Client().call("/rocebox/test"), "alive");
  }
  EXPECT_EQ(Client().call("/rocebox/test"), Json({{"error", "the run is over"}}));
  Endpoints again;
  again.add("/rocebox/test", "For this test", [&](const std::string&) { return Json("again"); });
  EXPECT_EQ(Client().call("/rocebox/test"), "again");
}

TEST(Endpoints, AnswerOneCallAtATime) {
  Endpoints endpoints;
  std::atomic<int> within{0}, most{0};
  endpoints.add("/rocebox/test", "For this test", [&](const std::string&) {
    most = std::max<int>(most, ++within);
    std::this_thread::yield();
    within--;
    return Json("done");
  });
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; i++)
    clients.emplace_back([] {
      Client client;
      for (int call = 0; call < 50; call++) EXPECT_EQ(client.call("/rocebox/test"), "done");
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(most, 1);
}

TEST(Endpoints, RefuseWhatDpdkDoesNotTake) {
  Endpoints endpoints;
  EXPECT_THROW(endpoints.add("no/slash", "x", [](const std::string&) { return Json(); }), std::logic_error);
  EXPECT_THROW(endpoints.add("/" + std::string(60, 'x'), "x", [](const std::string&) { return Json(); }),
               std::logic_error);
}

}  // namespace
}  // namespace rocebox
