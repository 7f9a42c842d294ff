# SPDX-License-Identifier: BSD-3-Clause
"""Commands into a machine over its virtio-serial ports, as guest/agent answers them; see there for the protocol."""
import base64
import fcntl
import os
import secrets
import shlex
import socket
import time

CHANNELS = 4  # commands that one machine runs at a time
CONTROL = CHANNELS  # one channel more, for ending them
ANSWER_SECONDS = 3.0  # an agent that is free answers a ping in milliseconds; this is for a machine that is short of CPU


class ChannelError(Exception):
    """The machine does not answer, or ended."""


def socket_name(number):
    return f"channel{number}.sock"


def may_begin(mark, data):
    """The end of `data` with which `mark` may begin."""
    lengths = range(min(len(mark) - 1, len(data)), 0, -1)
    return next((mark[:length] for length in lengths if data.endswith(mark[:length])), b"")


class Channel:
    """One port of the machine whose state is in the folder `state`, for this process alone while it is open.

    Raises BlockingIOError when another process has it, OSError when no machine listens."""

    def __init__(self, state, number):
        self.lock = open(os.path.join(state, f"channel{number}.lock"), "w")
        self.wire = socket.socket(socket.AF_UNIX)
        self.read = b""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A socket's path has at most 107 bytes; through the open folder that of `state` may be longer.
            folder = os.open(state, os.O_PATH)
            try:
                self.wire.connect(f"/proc/self/fd/{folder}/{socket_name(number)}")
            finally:
                os.close(folder)
        except OSError:
            self.close()
            raise

    def close(self):
        self.wire.close()
        self.lock.close()

    def send(self, words):
        """Sends a request; returns its tag, by which the answer is known."""
        tag = secrets.token_hex(8)
        self.wire.settimeout(ANSWER_SECONDS)
        self.wire.sendall(f"\n{tag} {words}\n".encode())  # whoever was here before may have left half a line
        return tag

    def ask(self, words, seconds):
        """Sends a request; returns the words of the answer behind its tag, or None when none comes in time."""
        begin = f"{self.send(words)} ".encode()
        if not self.fill(lambda: begin in self.read and b"\n" in self.read.split(begin, 1)[1], seconds):
            return None
        line, self.read = self.read.split(begin, 1)[1].split(b"\n", 1)
        return line.decode().split()

    def follow(self, tag, seconds, out, error):
        """Writes what the command of that tag prints to `out` and `error`, as it comes; returns its status."""
        begin, end = f"{tag} ".encode(), time.monotonic() + seconds
        while True:
            printed, found, rest = self.read.partition(begin)
            kept = b"" if found else may_begin(begin, printed)
            out.write(printed[:len(printed) - len(kept)])
            out.flush()
            self.read = found + rest if found else kept
            enough = (lambda: b"\n" in self.read) if found else (lambda: len(self.read) > len(kept))
            if not self.fill(enough, end - time.monotonic()):
                raise ChannelError(f"no answer within {seconds:g} s")
            if not found:
                continue
            line, _, self.read = self.read.partition(b"\n")
            verb, _, text = line[len(begin):].partition(b" ")
            if verb == b"done":
                return int(text)
            error.write(text + b"\n")
            error.flush()

    def fill(self, enough, seconds):
        """Reads until `enough()`; false when that takes longer than `seconds`."""
        end = time.monotonic() + seconds
        while not enough():
            left = end - time.monotonic()
            if left <= 0:
                return False
            self.wire.settimeout(left)
            try:
                more = self.wire.recv(1 << 16)
            except socket.timeout:
                return False
            if not more:
                raise ChannelError("the machine ended")
            self.read += more
        return True


def open_channel(state, seconds, still_there, numbers=range(CHANNELS)):
    """A channel of these whose agent answers, waiting for one up to `seconds`; gives up early when `still_there()` is false."""
    end = time.monotonic() + seconds
    while True:
        for number in numbers:
            try:
                channel = Channel(state, number)
            except OSError:
                continue  # not up yet, or in use
            try:
                if channel.ask("ping", min(ANSWER_SECONDS, max(0.1, end - time.monotonic()))) == ["ready"]:
                    return channel
            except (OSError, ChannelError):
                pass
            channel.close()
        if not still_there():
            raise ChannelError("the machine ended")
        if time.monotonic() > end:
            raise ChannelError(f"no answer within {seconds:g} s")
        time.sleep(0.1)


def start(channel, words, seconds):
    """Starts a command, words as for exec; returns its tag, to follow it or end it by."""
    command = "exec " + shlex.join(words)  # no shell between it and the signals that it gets
    return channel.send(f"run {seconds:g} {base64.b64encode(command.encode()).decode()}")
