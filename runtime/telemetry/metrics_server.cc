// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/metrics_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

constexpr unsigned kWorkers = 2;
constexpr std::size_t kWaitingMax = 8;
constexpr auto kPatience = std::chrono::seconds(2);
constexpr auto kLook = std::chrono::milliseconds(50);  // how often a wait for a client looks whether the run is over
constexpr auto kContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

using SteadyTime = std::chrono::steady_clock::time_point;

// Clients that were accepted and wait for a worker, and whether the run is over.
struct Room {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  unsigned workers = 0;
  std::atomic<bool> closed = false;  // written with the lock held

  void close() {
    const std::lock_guard guard(lock);
    closed = true;
    changed.notify_all();
  }
};

// A client's connection. The library's own gives each read and write its time, so that one who dribbles is served for
// ever; this one gives a time to the whole request, and one to the whole answer.
class Connection final : public httplib::Stream {
 public:
  Connection(socket_t socket, const Room& room)
      : socket_(socket), room_(room), read_end_(std::chrono::steady_clock::now() + kPatience) {}

  bool is_readable() const override { return at_ < size_ || wait(POLLIN, read_end_); }
  bool is_writable() const override { return wait(POLLOUT, write_end()); }
  ssize_t read(char* to, std::size_t size) override {
    if (at_ == size_) {
      if (!wait(POLLIN, read_end_)) return -1;
      const ssize_t got = recv(socket_, bytes_, sizeof bytes_, MSG_DONTWAIT);
      if (got <= 0) return got;
      at_ = 0;
      size_ = static_cast<std::size_t>(got);
    }
    const std::size_t count = std::min(size, size_ - at_);
    std::copy_n(bytes_ + at_, count, to);
    at_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override {
    return is_writable() ? send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL) : -1;
  }
  // Nobody here asks for them.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  // Begins with the first byte of the answer: the client is not to blame for the time that it took to make.
  SteadyTime write_end() const {
    if (write_end_ == SteadyTime()) write_end_ = std::chrono::steady_clock::now() + kPatience;
    return write_end_;
  }
  bool wait(short what, SteadyTime end) const {
    while (!room_.closed && std::chrono::steady_clock::now() < end) {
      pollfd ready{socket_, what, 0};
      if (poll(&ready, 1, static_cast<int>(kLook.count())) > 0) return true;
    }
    return false;
  }

  const socket_t socket_;
  const Room& room_;
  const SteadyTime read_end_;
  mutable SteadyTime write_end_;
  std::size_t at_ = 0, size_ = 0;
  char bytes_[4096];
};

// One request of each client, within its time.
class Server final : public httplib::Server {
 public:
  explicit Server(std::shared_ptr<Room> room) : room_(std::move(room)) {}

 private:
  bool process_and_close_socket(socket_t socket) override {
    bool closed = false;
    Connection connection(socket, *room_);
    const bool good = !room_->closed && process_request(connection, true, closed, nullptr);
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return good;
  }
  std::shared_ptr<Room> room_;
};

// The library's own queue has no bound; this one lets the accepting thread wait.
class Waiting final : public httplib::TaskQueue {
 public:
  explicit Waiting(std::shared_ptr<Room> room) : room_(std::move(room)) {
    room_->workers = kWorkers;
    for (unsigned i = 0; i < kWorkers; i++) std::thread([room = room_] { work(*room); }).detach();
  }
  void enqueue(std::function<void()> task) override {
    std::unique_lock lock(room_->lock);
    room_->changed.wait(lock, [&] { return room_->tasks.size() < kWaitingMax || room_->closed; });
    room_->tasks.push_back(std::move(task));  // when the run is over, all that is done with it is to hang up
    room_->changed.notify_all();
  }
  // Waits for the workers, but not for ever.
  void shutdown() override {
    room_->close();
    std::unique_lock lock(room_->lock);
    room_->changed.wait_for(lock, kPatience, [&] { return room_->workers == 0; });
  }

 private:
  static void work(Room& room) {
    std::unique_lock lock(room.lock);
    while (true) {
      room.changed.wait(lock, [&] { return !room.tasks.empty() || room.closed; });
      if (room.tasks.empty()) break;
      const std::function<void()> task = std::move(room.tasks.front());
      room.tasks.pop_front();
      room.changed.notify_all();
      lock.unlock();
      task();
      lock.lock();
    }
    room.workers--;
    room.changed.notify_all();
  }
  std::shared_ptr<Room> room_;
};

}  // namespace

class MetricsServer::Impl {
 public:
  // What answers, until it is told that the run is over.
  struct Source {
    std::mutex lock;
    std::function<std::string()> render;
  };

  Impl(const config::SocketAddress& address, const std::string& place) : host_(address.host) {
    server_->set_socket_options([](socket_t socket) {  // the library's default would let two listen at once
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_->set_payload_max_length(1024);
    errno = 0;
    port_ = address.port;
    if (port_ == 0)
      port_ = server_->bind_to_any_port(host_);
    else if (!server_->bind_to_port(host_, port_))
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
    {
      const std::lock_guard lock(source_->lock);
      source_->render = nullptr;
    }
    if (!listener_.joinable()) return;
    room_->close();  // first: the listener may wait for room
    server_->stop();
    listener_.join();
    const std::lock_guard lock(room_->lock);
    if (room_->workers > 0) new std::shared_ptr<httplib::Server>(server_);  // a worker still uses it, till the end
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start(std::function<std::string()> render) {
    source_->render = std::move(render);
    server_->Get("/metrics", [source = source_](const httplib::Request&, httplib::Response& response) {
      const std::lock_guard lock(source->lock);
      if (source->render) return response.set_content(source->render(), kContentType);
      response.status = 503;
    });
    server_->Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("rocebox: /metrics has the numbers, as OpenMetrics\n", "text/plain");
    });
    server_->new_task_queue = [room = room_] { return new Waiting(room); };  // the library owns it
    listener_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::string address() const { return config::SocketAddress{host_, port_}.text(); }

 private:
  std::string host_;
  int port_ = -1;
  std::shared_ptr<Room> room_ = std::make_shared<Room>();
  std::shared_ptr<httplib::Server> server_ = std::make_shared<Server>(room_);
  std::shared_ptr<Source> source_ = std::make_shared<Source>();
  std::thread listener_;
};

MetricsServer::MetricsServer(const config::SocketAddress& address, const std::string& place)
    : impl_(std::make_unique<Impl>(address, place)) {}
MetricsServer::~MetricsServer() = default;
void MetricsServer::start(std::function<std::string()> render) { impl_->start(std::move(render)); }
std::string MetricsServer::address() const { return impl_->address(); }

}  // namespace rocebox
