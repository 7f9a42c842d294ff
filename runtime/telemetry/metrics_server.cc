// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/metrics_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

constexpr std::size_t kClientsMax = 64;
constexpr std::size_t kRequestBytesMax = 8192;
// A client that has just come is not sent away for others: its request is on its way.
constexpr auto kGrace = std::chrono::milliseconds(100);
// Where the process has no descriptor left for a client: how long it is before the next look.
constexpr auto kNoDescriptor = std::chrono::milliseconds(100);
constexpr auto kContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

using SteadyTime = std::chrono::steady_clock::time_point;

// A client's connection: one request, then its answer, each within its time as a whole, so that one who dribbles is not
// served for ever.
class Client {
 public:
  Client(int socket, SteadyTime now, std::chrono::milliseconds patience)
      : socket_(socket), came_(now), end_(now + patience) {}
  ~Client() { close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool answering() const { return !answer_.empty(); }
  SteadyTime came() const { return came_; }
  SteadyTime end() const { return end_; }
  pollfd wanted() const { return {socket_, static_cast<short>(answering() ? POLLOUT : POLLIN), 0}; }

  // Goes on as far as the client lets it. False when it is done with.
  template <class Answer>
  bool proceed(std::chrono::milliseconds patience, Answer answer) {
    if (!answering()) {
      std::array<char, 4096> bytes;
      const ssize_t got = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      if (got == 0) return false;
      head_.append(bytes.data(), static_cast<std::size_t>(got));
      if (head_.find("\r\n\r\n") == std::string::npos) return head_.size() < kRequestBytesMax;
      answer_ = answer(head_);
      // The time begins with the answer: the client is not to blame for what it took to make.
      end_ = std::chrono::steady_clock::now() + patience;
    }
    const ssize_t sent = send(socket_, answer_.data() + sent_, answer_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<std::size_t>(sent);
    if (sent_ < answer_.size()) return true;
    std::array<char, 4096> rest;  // unread, it would make the kernel take back the answer
    while (recv(socket_, rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
    }
    shutdown(socket_, SHUT_RDWR);
    return false;
  }

 private:
  const int socket_;
  const SteadyTime came_;
  SteadyTime end_;
  std::string head_, answer_;
  std::size_t sent_ = 0;
};

// The library's requests, routes and answers, behind a loop of our own; metrics_server.h says why.
class Server final : public httplib::Server {
 public:
  explicit Server(std::chrono::milliseconds patience) : patience_(patience) {}
  ~Server() override {
    if (svr_sock_ != INVALID_SOCKET) close(svr_sock_);
  }

  // Until `over`, which comes with a byte at `wake`.
  void serve(const std::atomic<bool>& over, int wake) {
    fcntl(svr_sock_, F_SETFL, O_NONBLOCK);
    ::listen(svr_sock_, static_cast<int>(kClientsMax));  // the library lets five wait
    while (!over) {
      wait(wake);
      const SteadyTime now = std::chrono::steady_clock::now();
      std::erase_if(clients_, [&](Client& client) {
        return client.end() <= now ||
               !client.proceed(patience_, [this](const std::string& head) { return answer(head); });
      });
      accept_all(now);
    }
    clients_.clear();
  }

 private:
  void wait(int wake) {
    std::vector<pollfd> all = {{wake, POLLIN, 0}};
    SteadyTime end = SteadyTime::max();
    for (const Client& client : clients_) {
      all.push_back(client.wanted());
      end = std::min(end, client.end());
    }
    if (no_accept_until_ == SteadyTime())
      all.push_back({svr_sock_, POLLIN, 0});
    else
      end = std::min(end, no_accept_until_);
    const auto left = end - std::chrono::steady_clock::now();
    const bool forever = end == SteadyTime::max();
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(std::max(left, left.zero())).count();
    poll(all.data(), all.size(), forever ? -1 : static_cast<int>(milliseconds));
  }

  // Where there are too many, who has kept us waiting longest goes; of those who are being answered only when all are.
  void accept_all(SteadyTime now) {
    if (no_accept_until_ > now) return;
    no_accept_until_ = {};
    for (std::size_t i = 0; i < kClientsMax; i++) {
      auto goes = clients_.end();
      if (clients_.size() == kClientsMax) {
        goes = std::find_if(clients_.begin(), clients_.end(), [](const auto& c) { return !c.answering(); });
        if (goes == clients_.end()) goes = clients_.begin();
        no_accept_until_ = goes->came() + kGrace;
        if (no_accept_until_ > now) return;
        no_accept_until_ = {};
      }
      const int socket = accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (socket < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
          no_accept_until_ = now + kNoDescriptor;
        return;
      }
      if (goes != clients_.end()) clients_.erase(goes);
      clients_.emplace_back(socket, now, patience_);
    }
  }

  // To a request that is there whole. A body is not read; no page here has a use for one.
  std::string answer(const std::string& head) {
    httplib::detail::BufferStream stream;  // what is written into it follows what is to be read from it
    stream.write(head.data(), head.size());
    bool closed = false;
    process_request(stream, true, closed, nullptr);
    std::string answer = stream.get_buffer().substr(head.size());
    if (answer.empty()) answer = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    return answer;
  }

  const std::chrono::milliseconds patience_;
  std::list<Client> clients_;  // in the order in which they came
  SteadyTime no_accept_until_;
};

}  // namespace

class MetricsServer::Impl {
 public:
  Impl(const config::SocketAddress& address, const std::string& place, std::chrono::milliseconds patience)
      : host_(address.host), server_(patience) {
    server_.set_socket_options([](socket_t socket) {  // the library's default would let two listen at once
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_.set_payload_max_length(1024);
    errno = 0;
    port_ = address.port;
    if (port_ == 0)
      port_ = server_.bind_to_any_port(host_);
    else if (!server_.bind_to_port(host_, port_))
      port_ = -1;
    if (port_ > 0) return;
    const int error = errno;
    const char* mend = error == EADDRINUSE      ? "; choose another port, or end who has it (ss -ltnp shows who)"
                       : error == EADDRNOTAVAIL ? "; give an address of this machine (ip address)"
                       : error == EACCES        ? "; choose a port from 1024 on"
                                                : "";
    throw ConfigError(fmt::format("{}: metrics cannot be served at {}: {}{}", place, address.text(),
                                  error ? std::strerror(error) : "no such address", mend));
  }

  ~Impl() {
    over_ = true;
    eventfd_write(wake_, 1);
    if (listener_.joinable()) listener_.join();
    close(wake_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start(std::function<std::string()> render) {
    server_.Get("/metrics", [render = std::move(render)](const httplib::Request&, httplib::Response& response) {
      response.set_content(render(), kContentType);
    });
    server_.Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("rocebox: /metrics has the numbers, as OpenMetrics\n", "text/plain");
    });
    listener_ = std::thread([this] { server_.serve(over_, wake_); });
  }

  std::string address() const { return config::SocketAddress{host_, port_}.text(); }

 private:
  std::string host_;
  int port_ = -1;
  Server server_;
  std::atomic<bool> over_ = false;
  const int wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::thread listener_;
};

MetricsServer::MetricsServer(const config::SocketAddress& address, const std::string& place,
                             std::chrono::milliseconds patience)
    : impl_(std::make_unique<Impl>(address, place, patience)) {}
MetricsServer::~MetricsServer() = default;
void MetricsServer::start(std::function<std::string()> render) { impl_->start(std::move(render)); }
std::string MetricsServer::address() const { return impl_->address(); }

}  // namespace rocebox
