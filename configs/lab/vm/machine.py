# SPDX-License-Identifier: BSD-3-Clause
"""One QEMU machine: what it is started with, who it is afterwards, how it ends. Its state is a folder of its own."""
import fcntl
import ipaddress
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import time

import channel

SIOCGIFFLAGS, SIOCGIFMTU, IFF_UP, IFF_RUNNING = 0x8913, 0x8921, 1, 0x40
IDENTITY, CONSOLE, QEMU_LOG = "machine.json", "console.log", "qemu.log"
FILES = (IDENTITY, CONSOLE, QEMU_LOG) + tuple(f"channel{n}.{end}" for n in range(channel.CHANNELS + 1) for end in ("sock", "lock"))
END_SECONDS = 5.0  # from SIGTERM to SIGKILL
ATTACH_SECONDS = 30.0  # from QEMU's start until it has opened its TAP


class MachineError(Exception):
    """What cannot be done, and how to mend it."""


def of_interface(name, request, layout):
    """What the kernel answers about an interface, as `layout` has it behind the name. OSError when there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        return struct.unpack_from("16x" + layout, fcntl.ioctl(asker, request, struct.pack("16s16x", name.encode())))[0]


def is_attached(tap):
    """Whether some process has opened the TAP: then it has a carrier."""
    try:
        return bool(of_interface(tap, SIOCGIFFLAGS, "h") & IFF_RUNNING)
    except OSError:
        return False


def check_tap(tap, mtu):
    """The TAP is there, up, and takes frames of `mtu`: a QEMU without one would make another or drop in silence."""
    try:
        flags, tap_mtu = of_interface(tap, SIOCGIFFLAGS, "h"), of_interface(tap, SIOCGIFMTU, "i")
    except OSError:
        raise MachineError(f"no interface `{tap}` in this network namespace: ip tuntap add {tap} mode tap") from None
    if not flags & IFF_UP:
        raise MachineError(f"`{tap}` is down: ip link set {tap} up")
    if tap_mtu < mtu:
        raise MachineError(f"`{tap}` has MTU {tap_mtu}, and the machine is to have {mtu}: ip link set {tap} mtu {mtu}")


def mac_of(address):
    """A MAC address of QEMU's range that follows the IP address, so that a lab's machines differ."""
    return "52:54:00:" + ":".join(f"{byte:02x}" for byte in ipaddress.ip_interface(address).ip.packed[-3:])


def boot_id():
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_time(pid):
    """When the process began, in clock ticks since boot; None when it is gone. With the PID it names one process ever."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


class Machine:
    """The machine of a state folder: running, ended, or not yet started."""

    def __init__(self, state):
        self.state = pathlib.Path(state).absolute()

    def identity(self):
        try:
            return json.loads((self.state / IDENTITY).read_text())
        except (OSError, ValueError):
            return None

    def running(self):
        """Its PID while it runs; None when not, also when the PID is another process's by now."""
        identity = self.identity()
        if not identity or identity["boot_id"] != boot_id() or start_time(identity["pid"]) != identity["start_time"]:
            return None
        return identity["pid"]

    def remember(self, name):
        """Called in the process that becomes QEMU, before it does: there is no moment at which it runs unknown."""
        text = json.dumps({"name": name, "pid": os.getpid(), "start_time": start_time(os.getpid()), "boot_id": boot_id()})
        part = self.state / (IDENTITY + ".part")
        part.write_text(text + "\n")
        part.rename(self.state / IDENTITY)

    def command(self, name, image, tap, addresses, mac, mtu, memory, accelerator):
        tell = (f"console=ttyS0 quiet loglevel=4 panic=-1 tsc=reliable no_timer_check mitigations=off random.trust_cpu=on "
                f"rocebox.name={name} rocebox.mtu={mtu} rocebox.addresses={','.join(addresses)}")
        # Without its offloads the machine puts whole packets with right checksums on the wire.
        offloads = "".join(f",{word}=off" for word in ("csum", "gso", "guest_csum", "guest_tso4", "guest_tso6", "guest_ufo",
                                                       "host_tso4", "host_tso6", "host_ufo"))
        words = ["qemu-system-x86_64", "-name", name, "-machine", "q35", "-accel", accelerator, "-cpu", "max", "-smp", "1",
                 "-m", f"{memory}M", "-nodefaults", "-no-reboot", "-display", "none", "-serial", f"file:{CONSOLE}",
                 "-kernel", f"{image}/vmlinux", "-initrd", f"{image}/initramfs.cpio", "-append", tell,
                 "-netdev", f"tap,id=wire,ifname={tap},script=no,downscript=no,vhost=off",
                 "-device", f"virtio-net-pci,netdev=wire,mac={mac},romfile={offloads}", "-device", "virtio-serial-pci"]
        for number in (*range(channel.CHANNELS), channel.CONTROL):
            words += ["-chardev", f"socket,id=channel{number},path={channel.socket_name(number)},server=on,wait=off",
                      "-device", f"virtserialport,chardev=channel{number},name=rocebox.{number}"]
        return words

    def start(self, name, image, tap, addresses, mac, mtu, memory, accelerator):
        """Starts QEMU and returns once its TAP is open; it outlives this process. Raises MachineError or OSError, and then
        nothing is left."""
        if not shutil.which("qemu-system-x86_64"):
            raise MachineError("qemu-system-x86_64 is not installed: apt-get install qemu-system-x86")
        check_tap(tap, mtu)
        if self.running():
            raise MachineError(f"a machine runs in {self.state} already: vm.py stop --state {self.state}")
        self.forget()
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        words = self.command(name, image, tap, addresses, mac, mtu, memory, accelerator)
        try:
            with open(self.state / QEMU_LOG, "wb") as log:
                subprocess.Popen(words, cwd=self.state, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 start_new_session=True, preexec_fn=lambda: self.remember(name))
        except OSError:
            self.forget()
            raise
        end = time.monotonic() + ATTACH_SECONDS
        while not is_attached(tap) and self.running():
            if time.monotonic() > end:
                self.stop()
                raise MachineError(f"QEMU has not opened `{tap}` for {ATTACH_SECONDS:.0f} s")
            time.sleep(0.02)
        if not self.running():
            why = self.why_ended()
            self.forget()
            raise MachineError(f"the machine ended at once; it said last:\n{why}")

    def why_ended(self):
        """What QEMU and the machine's console said last."""
        said = ""
        for file in (QEMU_LOG, CONSOLE):
            try:
                said += "".join((self.state / file).read_text(errors="replace").splitlines(True)[-8:])
            except OSError:
                pass
        return said.strip() or "and it said nothing"

    def open_channel(self, seconds, **more):
        try:
            return channel.open_channel(self.state, seconds, self.running, **more)
        except channel.ChannelError as error:
            raise MachineError(f"{error}; it said last:\n{self.why_ended()}") from None

    def end_command(self, tag):
        """Sends SIGTERM to the command of that tag."""
        opened = self.open_channel(channel.ANSWER_SECONDS, numbers=(channel.CONTROL,))
        try:
            opened.ask(f"end {tag}", channel.ANSWER_SECONDS)
        finally:
            opened.close()

    def stop(self):
        """Ends the machine if it runs, and removes what it left. A process that is not it is never touched."""
        pid = self.running()
        if pid:
            try:
                handle = os.pidfd_open(pid)
            except ProcessLookupError:
                handle = None
            if handle is not None:
                if self.running() == pid:  # looked at again: the handle may be of one that took the PID since
                    self.end(handle)
                os.close(handle)
        self.forget()

    @staticmethod
    def end(handle):
        for number, seconds in ((signal.SIGTERM, END_SECONDS), (signal.SIGKILL, END_SECONDS)):
            try:
                signal.pidfd_send_signal(handle, number)
            except ProcessLookupError:
                return
            if select.select([handle], [], [], seconds)[0]:
                return
        raise MachineError("the machine does not end, not even by SIGKILL")

    def forget(self):
        """Removes the files of a machine that ended; the folder too, unless something else is in it."""
        for file in FILES + (IDENTITY + ".part",):
            (self.state / file).unlink(missing_ok=True)
        try:
            self.state.rmdir()
        except OSError:
            pass
