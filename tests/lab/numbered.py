# SPDX-License-Identifier: BSD-3-Clause
"""Numbered packets from the left host to the right one, to say which of them were lost, doubled or out of order."""

import bed

RECEIVE = """
import select, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
s.bind((sys.argv[1], 9000))
print("ready", flush=True)
numbers, told = [], False
while True:  # until standard input ends, and what has come by then is read
    readable, _, _ = select.select([s] if told else [s, sys.stdin], [], [], 0.5 if told else None)
    if s in readable:
        numbers.append(struct.unpack("!I", s.recv(2048)[:4])[0])
    elif told:
        break
    told |= sys.stdin in readable
print(*numbers)
"""
SEND = """
import os, select, socket, struct, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # see wire_tool.py
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
number = 0
while not select.select([sys.stdin], [], [], 0)[0]:  # until standard input ends
    for _ in range(int(sys.argv[2])):
        s.sendto(struct.pack("!I", number) + bytes(200), (sys.argv[1], 9000))
        number += 1
    time.sleep(0.001)
print(number)
"""
# In each millisecond. Under ThreadSanitizer a run may stand still for as long as a socket's ring of 2048 has room, by no fault of its own.
BURST = 1 if bed.has_thread_sanitizer() else 8


def start(test, address):
    """A receiver at the address and a sender to it. finish() of the first says the numbers that arrived, of the second how many it sent."""
    receiver = test.child_within(test.right, bed.PYTHON, "-c", RECEIVE, address, stdin=bed.subprocess.PIPE)
    test.assertEqual(receiver.stdout.readline(), "ready\n")
    return receiver, test.child_within(test.left, bed.PYTHON, "-c", SEND, address, str(BURST), stdin=bed.subprocess.PIPE)
