// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/metrics_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <deque>

namespace rocebox {
namespace {

// So long that nobody is hung up on for being slow: what a test waits for does not come by waiting.
constexpr auto kForever = std::chrono::hours(1);
constexpr std::size_t kClientsMax = 64;

class Connected {
 public:
  explicit Connected(const MetricsServer& server) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::string address = server.address();
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  ~Connected() { close(socket_); }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;

  void say(std::string_view text) {
    EXPECT_EQ(send(socket_, text.data(), text.size(), MSG_NOSIGNAL), std::ssize(text));
  }
  // All that comes, until the server hangs up.
  std::string heard() {
    std::string all;
    char bytes[4096];
    for (ssize_t got; (got = recv(socket_, bytes, sizeof bytes, 0)) > 0;)
      all.append(bytes, static_cast<std::size_t>(got));
    return all;
  }
  bool is_held() {
    char byte;
    return recv(socket_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
  }

 private:
  int socket_;
};

constexpr std::string_view kGet = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

class MetricsServerTest : public testing::Test {
 protected:
  void SetUp() override {
    server.start([] { return std::string("number 1\n# EOF\n"); });
  }
  std::string scraped() {
    Connected client(server);
    client.say(kGet);
    return client.heard();
  }
  MetricsServer server{{"127.0.0.1", 0}, "test", kForever};
};

TEST_F(MetricsServerTest, ClientsThatSayNothingKeepNobodyWaiting) {
  std::deque<Connected> idle;
  for (std::size_t i = 0; i + 1 < kClientsMax; i++) idle.emplace_back(server).say(i % 2 ? "" : "GET /met");
  for (int i = 0; i < 3; i++) EXPECT_NE(scraped().find("number 1\n# EOF\n"), std::string::npos);
  for (Connected& client : idle) EXPECT_TRUE(client.is_held()) << "nobody had to go for it";
}

TEST_F(MetricsServerTest, WhoKeptItWaitingLongestGoesWhenThereAreTooMany) {
  std::deque<Connected> idle;
  for (std::size_t i = 0; i < 3 * kClientsMax; i++) idle.emplace_back(server);
  EXPECT_NE(scraped().find("number 1"), std::string::npos);
  for (std::size_t i = 0; i < 2 * kClientsMax; i++) EXPECT_EQ(idle[i].heard(), "") << i;
  EXPECT_TRUE(idle.back().is_held());
}

TEST_F(MetricsServerTest, ARequestMayComeInPieces) {
  Connected client(server);
  for (const char c : kGet) client.say({&c, 1});
  EXPECT_NE(client.heard().find("number 1"), std::string::npos);
}

TEST_F(MetricsServerTest, WhatIsNoRequestIsAnsweredOrHungUpOn) {
  for (const std::string& text :
       {std::string("\r\n\r\n"), std::string("GET\r\n\r\n"),
        std::string("POST /metrics HTTP/1.1\r\nContent-Length: 99\r\n\r\n"), std::string(3, '\0') + "\r\n\r\n",
        std::string(100'000, 'a'), "GET /" + std::string(7000, 'a') + " HTTP/1.1\r\n\r\n"}) {
    Connected client(server);
    client.say(text.substr(0, 8192));
    const std::string answer = client.heard();
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 4")) << answer;
  }
  EXPECT_NE(scraped().find("number 1"), std::string::npos);
}

TEST_F(MetricsServerTest, AClientThatDoesNotReadItsAnswerKeepsNobodyWaiting) {
  MetricsServer large({"127.0.0.1", 0}, "test", kForever);
  large.start([] { return std::string(64 << 20, 'x') + "\n# EOF\n"; });
  std::deque<Connected> deaf;
  for (int i = 0; i < 3; i++) deaf.emplace_back(large).say(kGet);
  Connected client(large);
  client.say("GET / HTTP/1.0\r\n\r\n");
  EXPECT_NE(client.heard().find("/metrics has the numbers"), std::string::npos);
}

TEST(MetricsServer, AClientThatIsSlowIsHungUpOn) {
  MetricsServer server({"127.0.0.1", 0}, "test", std::chrono::milliseconds(1));
  server.start([] { return std::string(); });
  EXPECT_EQ(Connected(server).heard(), "");
}

TEST(MetricsServer, AnAnswerThatCannotBeMadeIsAnError) {
  MetricsServer server({"127.0.0.1", 0}, "test", kForever);
  server.start([]() -> std::string { throw std::bad_alloc(); });
  Connected client(server);
  client.say(kGet);
  EXPECT_EQ(client.heard().substr(0, 12), "HTTP/1.1 500");
}

}  // namespace
}  // namespace rocebox
