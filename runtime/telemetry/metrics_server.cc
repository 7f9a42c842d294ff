// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/metrics_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

constexpr unsigned kWorkers = 2;
constexpr std::size_t kWaitingMax = 8;
constexpr std::time_t kPatienceSeconds = 2;
constexpr auto kContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

}  // namespace

class MetricsServer::Impl {
 public:
  // Clients that were accepted. The library's own queue has no bound; this one lets the accepting thread wait.
  class Waiting final : public httplib::TaskQueue {
   public:
    Waiting() {
      for (unsigned i = 0; i < kWorkers; i++) std::thread([room = room_] { work(*room); }).detach();
    }
    void enqueue(std::function<void()> task) override {
      std::unique_lock lock(room_->lock);
      room_->changed.wait(lock, [&] { return room_->tasks.size() < kWaitingMax; });
      room_->tasks.push_back(std::move(task));
      room_->changed.notify_all();
    }
    // Waits for the workers, but not for ever: a client may dribble.
    void shutdown() override {
      std::unique_lock lock(room_->lock);
      room_->closed = true;
      room_->changed.notify_all();
      room_->changed.wait_for(lock, std::chrono::seconds(kPatienceSeconds), [&] { return room_->workers == 0; });
    }

    struct Room {
      std::mutex lock;
      std::condition_variable changed;
      std::deque<std::function<void()>> tasks;
      unsigned workers = kWorkers;
      bool closed = false;
    };
    std::shared_ptr<Room> room() const { return room_; }

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
    std::shared_ptr<Room> room_ = std::make_shared<Room>();
  };

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
    server_->set_keep_alive_max_count(1);
    server_->set_read_timeout(kPatienceSeconds);
    server_->set_write_timeout(kPatienceSeconds);
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
    std::shared_ptr<Waiting::Room> room;
    if (listener_.joinable()) {
      server_->stop();
      listener_.join();
      room = room_;
    }
    if (!room) return;
    const std::lock_guard lock(room->lock);
    if (room->workers > 0) new std::shared_ptr<httplib::Server>(server_);  // a worker still uses it, till the end
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
    server_->new_task_queue = [this] {
      auto* waiting = new Waiting;  // the library owns it
      room_ = waiting->room();
      return waiting;
    };
    listener_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::string address() const { return config::SocketAddress{host_, port_}.text(); }

 private:
  std::string host_;
  int port_ = -1;
  std::shared_ptr<httplib::Server> server_ = std::make_shared<httplib::Server>();
  std::shared_ptr<Source> source_ = std::make_shared<Source>();
  std::shared_ptr<Waiting::Room> room_;  // of the listener; read when that has ended
  std::thread listener_;
};

MetricsServer::MetricsServer(const config::SocketAddress& address, const std::string& place)
    : impl_(std::make_unique<Impl>(address, place)) {}
MetricsServer::~MetricsServer() = default;
void MetricsServer::start(std::function<std::string()> render) { impl_->start(std::move(render)); }
std::string MetricsServer::address() const { return impl_->address(); }

}  // namespace rocebox
