// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/raw_port.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <rte_memcpy.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "runtime/drives/live/interface.h"

namespace rocebox {
namespace {

constexpr std::uint32_t kVlanTagBytes = 4, kMacAddressesBytes = 12, kEthernetBytes = 14;
// The kernel's virtio_net_hdr, of which HostOffload is the mirror. (<linux/virtio_net.h> is no C++.)
constexpr std::uint32_t kHeaderBytes = 10;
constexpr std::uint8_t kNeedsChecksum = 1;  // VIRTIO_NET_HDR_F_NEEDS_CSUM
static_assert(sizeof(HostOffload) == kHeaderBytes);

// A ring frame: the kernel's header, the virtio header, the packet with its Ethernet header and tags.
std::uint32_t frame_bytes_for(std::uint32_t mtu) {
  std::uint32_t bytes = 2048;
  while (bytes < mtu + kEthernetBytes + 2 * kVlanTagBytes + TPACKET2_HDRLEN + kHeaderBytes + 64) bytes *= 2;
  return bytes;
}

// The kernel takes a tag out of the packet and tells it beside; back it goes, into the room left in front.
void insert_tag(Packet packet, const tpacket2_hdr& header) {
  const std::uint16_t type = header.tp_status & TP_STATUS_VLAN_TPID_VALID ? header.tp_vlan_tpid : ETH_P_8021Q;
  const std::uint16_t tag = header.tp_vlan_tci;
  std::uint8_t* data = packet.data();
  std::memmove(data, data + kVlanTagBytes, kMacAddressesBytes);
  const std::uint8_t bytes[4] = {static_cast<std::uint8_t>(type >> 8), static_cast<std::uint8_t>(type),
                                 static_cast<std::uint8_t>(tag >> 8), static_cast<std::uint8_t>(tag)};
  std::memcpy(data + kMacAddressesBytes, bytes, sizeof bytes);
  HostOffload& offload = packet.meta().offload;
  if (offload.flags & kNeedsChecksum) offload.checksum_start += kVlanTagBytes;
  if (offload.gso_type) offload.header_bytes += kVlanTagBytes;
}

// A veth hands its host every frame, promiscuous or not; the kernel only says for whom it was.
bool is_for_another(const tpacket2_hdr& header) {
  const auto* address = reinterpret_cast<const sockaddr_ll*>(reinterpret_cast<const std::uint8_t*>(&header) +
                                                             TPACKET_ALIGN(sizeof(tpacket2_hdr)));
  return address->sll_pkttype == PACKET_OTHERHOST;
}

}  // namespace

RawPort::RawPort(const config::LiveBinding& binding, const std::string& by) : LivePort(binding, by) {
  const auto index = static_cast<int>(if_nametoindex(interface().c_str()));
  if (index == 0)
    refuse(fmt::format("there is no network interface `{}`; `ip link` lists those of this network namespace",
                       interface()));
  index_ = index;
  socket_ = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);  // deaf until it is bound
  if (socket_ < 0 && (errno == EPERM || errno == EACCES))
    refuse("no permission for raw packets: run as root, or give the capability CAP_NET_RAW");
  if (socket_ < 0) refuse(fmt::format("no packet socket: {}", std::strerror(errno)));
}

RawPort::~RawPort() {
  if (mtu_before_) {
    ifreq request{};
    std::strncpy(request.ifr_name, interface().c_str(), sizeof request.ifr_name - 1);
    request.ifr_mtu = mtu_before_;
    ioctl(socket_, SIOCSIFMTU, &request);
  }
  if (ring_) munmap(ring_, std::size_t{frame_bytes_} * frames_);
  if (socket_ >= 0) close(socket_);
}

void RawPort::set(int option, int value, const char* what) {
  if (setsockopt(socket_, SOL_PACKET, option, &value, sizeof value) != 0)
    refuse(fmt::format("this kernel has no {}: {}", what, std::strerror(errno)));
}

void RawPort::set_up(unsigned, unsigned, Pool& pool) {
  pool_ = &pool;
  ifreq request{};
  std::strncpy(request.ifr_name, interface().c_str(), sizeof request.ifr_name - 1);
  if (ioctl(socket_, SIOCGIFMTU, &request) != 0)
    refuse(fmt::format("its MTU cannot be read: {}", std::strerror(errno)));
  if (const int wanted = static_cast<int>(binding_.live.mtu); wanted != 0 && wanted != request.ifr_mtu) {
    const int before = request.ifr_mtu;
    request.ifr_mtu = wanted;
    if (ioctl(socket_, SIOCSIFMTU, &request) != 0)
      refuse(fmt::format("its MTU cannot be set to {}: {}{}", wanted, std::strerror(errno),
                         errno == EPERM    ? "; that needs the capability CAP_NET_ADMIN"
                         : errno == EINVAL ? "; `ip -d link` shows the most that it can have (maxmtu)"
                                           : ""));
    mtu_before_ = before;
  }
  mtu_ = static_cast<std::uint32_t>(request.ifr_mtu);
  segment_bytes_max_ = mtu_ + kEthernetBytes + 2 * kVlanTagBytes;
  frame_bytes_ = frame_bytes_for(mtu_);
  set(PACKET_VERSION, TPACKET_V2, "TPACKET_V2");
  set(PACKET_VNET_HDR, 1, "PACKET_VNET_HDR");
  set(PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
  set(PACKET_COPY_THRESH, 1, "PACKET_COPY_THRESH");  // what is longer than a frame is kept whole beside the ring
  const int bypass = 1;
  setsockopt(socket_, SOL_PACKET, PACKET_QDISC_BYPASS, &bypass, sizeof bypass);  // faster, where it is known
  const int long_bytes = 8 << 20;
  if (setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &long_bytes, sizeof long_bytes) != 0)
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &long_bytes, sizeof long_bytes);
  tpacket_req ring{};
  ring.tp_frame_size = frame_bytes_;
  ring.tp_block_size = std::max<std::uint32_t>(frame_bytes_, static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE)));
  const std::uint32_t per_block = ring.tp_block_size / frame_bytes_;
  ring.tp_block_nr = (static_cast<std::uint32_t>(binding_.live.rx_descriptors) + per_block - 1) / per_block;
  ring.tp_frame_nr = frames_ = ring.tp_block_nr * per_block;
  if (setsockopt(socket_, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0)
    refuse(fmt::format("no memory for a ring of {} frames of {} bytes: {}; lower `rx_descriptors:`", frames_,
                       frame_bytes_, std::strerror(errno)));
  void* mapped = mmap(nullptr, std::size_t{frame_bytes_} * frames_, PROT_READ | PROT_WRITE, MAP_SHARED, socket_, 0);
  if (mapped == MAP_FAILED) refuse(fmt::format("its ring cannot be mapped: {}", std::strerror(errno)));
  ring_ = static_cast<std::uint8_t*>(mapped);
}

void RawPort::start() {
  if (!be_promiscuous(index_)) refuse(fmt::format("promiscuous mode cannot be set: {}", std::strerror(errno)));
  if (!bind_to(index_)) refuse(fmt::format("it cannot be bound: {}", std::strerror(errno)));
  mtu_before_ = 0;
  started_ = true;
}

bool RawPort::be_promiscuous(int index) {
  if (!binding_.live.promiscuous) return true;
  packet_mreq membership{};
  membership.mr_ifindex = index;
  membership.mr_type = PACKET_MR_PROMISC;
  return setsockopt(socket_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof membership) == 0;
}

bool RawPort::bind_to(int index) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = index;
  return bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// The kernel takes the socket off an interface that goes away, whatever has its name or its index afterwards.
bool RawPort::is_bound() const {
  sockaddr_ll address{};
  socklen_t size = sizeof address;
  return getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0 && address.sll_ifindex > 0;
}

// The ring and all that is set on the socket stay; only its MTU and its promiscuous mode went with the interface.
void RawPort::return_to(int index) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface().c_str(), sizeof request.ifr_name - 1);
  request.ifr_mtu = static_cast<int>(binding_.live.mtu);
  if (binding_.live.mtu != 0) ioctl(socket_, SIOCSIFMTU, &request);
  if (ioctl(socket_, SIOCGIFMTU, &request) != 0 || !be_promiscuous(index) || !bind_to(index)) return;
  segment_bytes_max_ = static_cast<std::uint32_t>(request.ifr_mtu) + kEthernetBytes + 2 * kVlanTagBytes;
  index_ = index;
}

unsigned RawPort::receive(unsigned, std::span<Packet> room) {
  unsigned count = 0;
  while (count < room.size()) {
    auto& header = *reinterpret_cast<tpacket2_hdr*>(frame(at_));
    std::atomic_ref<std::uint32_t> status(header.tp_status);
    if (!(status.load(std::memory_order_acquire) & TP_STATUS_USER)) break;
    PacketPtr packet;
    if (!binding_.live.promiscuous && is_for_another(header))
      rx_other_mac_.add();
    else
      packet = header.tp_status & TP_STATUS_COPY ? take_long(header) : take_frame(header);
    status.store(TP_STATUS_KERNEL, std::memory_order_release);
    at_ = at_ + 1 == frames_ ? 0 : at_ + 1;
    if (packet) room[count++] = packet.release();
  }
  return count;
}

PacketPtr RawPort::take_frame(const tpacket2_hdr& header) {
  const auto* start = reinterpret_cast<const std::uint8_t*>(&header) + header.tp_mac;
  const std::uint32_t shift = header.tp_status & TP_STATUS_VLAN_VALID ? kVlanTagBytes : 0;
  PacketPtr packet = pool_->allocate(header.tp_snaplen + shift);
  if (!packet) {
    rx_no_packet_.add();
    return {};
  }
  rte_memcpy(packet->data() + shift, start, header.tp_snaplen);
  std::memcpy(static_cast<void*>(&packet->meta().offload), start - kHeaderBytes, kHeaderBytes);
  if (shift) insert_tag(*packet, header);
  return packet;
}

// A packet longer than a frame of the ring: it waits whole in the socket's queue. Rare: super-packets.
PacketPtr RawPort::take_long(const tpacket2_hdr& header) {
  const std::uint32_t shift = header.tp_status & TP_STATUS_VLAN_VALID ? kVlanTagBytes : 0;
  PacketPtr packet = pool_->allocate(header.tp_len + shift);
  HostOffload offload;
  iovec parts[2] = {{&offload, kHeaderBytes}, {nullptr, 0}};
  if (packet) parts[1] = {packet->data() + shift, packet->size() - shift};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = packet ? 2 : 1;
  const ssize_t bytes = recvmsg(socket_, &message, MSG_DONTWAIT);
  if (!packet) {
    rx_no_packet_.add();
    return {};
  }
  if (bytes <= static_cast<ssize_t>(kHeaderBytes) || message.msg_flags & MSG_TRUNC) {
    rx_errors_.add();
    return {};
  }
  packet->trim_to(static_cast<std::uint32_t>(bytes) - kHeaderBytes + shift);
  packet->meta().offload = offload;
  if (shift) insert_tag(*packet, header);
  return packet;
}

LivePort::Sent RawPort::send(unsigned, std::span<Packet> packets) {
  const std::uint32_t segment_bytes_max = segment_bytes_max_.load(std::memory_order_relaxed);
  const auto count = static_cast<unsigned>(std::min<std::size_t>(packets.size(), kBatchMax));
  for (unsigned i = 0; i < count; i++) {
    const std::uint32_t size = packets[i].size();
    HostOffload offload = packets[i].meta().offload;
    // A kernel may have cut the packet since; then there is nothing left to finish or to segment.
    if (offload.checksum_start + offload.checksum_offset + 2u > size) offload = {};
    if (size <= segment_bytes_max) offload.gso_type = 0, offload.segment_bytes = 0, offload.header_bytes = 0;
    headers_[i] = offload;
    parts_[i] = {iovec{&headers_[i], kHeaderBytes}, iovec{packets[i].data(), size}};
    messages_[i].msg_hdr.msg_iov = parts_[i].data();
    messages_[i].msg_hdr.msg_iovlen = 2;
  }
  unsigned done = 0, failed = 0;
  while (done < count) {
    const int sent = sendmmsg(socket_, &messages_[done], count - done, MSG_DONTWAIT);
    if (sent > 0) {
      done += static_cast<unsigned>(sent);
    } else if (const bool up = is_up_.load(std::memory_order_relaxed);
               errno == EAGAIN || errno == EINTR || (errno == ENOBUFS && up)) {
      break;  // the interface's queue is full: later
    } else {  // too long for the interface: this one is lost; where the interface is down, so are the others
      const unsigned lost = up ? 1 : count - done;
      failed += lost;
      done += lost;
    }
  }
  for (unsigned i = 0; i < done; i++) rte_pktmbuf_free(packets[i].mbuf());
  return {done, failed};
}

// An interface that went down leaves an error at the socket, which would be readable for ever.
void RawPort::wake_on(unsigned, bool on) {
  int error = 0;
  socklen_t size = sizeof error;
  if (on) getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
}

LivePortCounts RawPort::counts() const {
  tpacket_stats statistics{};
  socklen_t size = sizeof statistics;
  if (getsockopt(socket_, SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0)
    rx_missed_.add(statistics.tp_drops);  // reading them sets them to 0
  return {rx_missed_.read(), rx_errors_.read(), rx_no_packet_.read(), rx_other_mac_.read(), 0};
}

LinkState RawPort::link() const {
  return started_ && !is_bound() ? LinkState::kGone : interface_state(socket_, index_);
}

LinkState RawPort::look() {
  LinkState state = link();
  if (const unsigned index = if_nametoindex(interface().c_str()); state == LinkState::kGone && index != 0) {
    return_to(static_cast<int>(index));
    state = link();
  }
  is_up_.store(state == LinkState::kUp, std::memory_order_relaxed);
  return state;
}

}  // namespace rocebox
