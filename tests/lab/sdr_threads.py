# SPDX-License-Identifier: BSD-3-Clause
"""Calls of libsdr by several threads at once, on objects of their own and on one that they share: sdr_threads.py LIBRARY."""
import ctypes
import sys
import threading
from ctypes import POINTER, byref, c_size_t, c_uint8, c_uint32, c_void_p

from sdr_misuse import DevAttr, QpAttr, RecvWr

THREADS, ROUNDS, IDS = 4, 30, 16
RETRY = 2


class Many:
    """A barrier's worth of threads; what one throws ends the process."""

    def __init__(self, body):
        self.failed, self.together = [], threading.Barrier(THREADS)
        threads = [threading.Thread(target=self.run, args=(body, n)) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failed:
            raise self.failed[0]

    def run(self, body, number):
        try:
            body(self, number)
        except BaseException as error:  # told by the main thread
            self.failed.append(error)
            self.together.abort()


class Bench:
    def __init__(self, library):
        # The device program finds the device API in the library.
        self.sdr = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        for name in ("sdr_context_create", "sdr_qp_create", "sdr_mr_reg"):
            getattr(self.sdr, name).restype = c_void_p
        self.context = c_void_p(self.sdr.sdr_context_create(b"nic", byref(DevAttr(2, 3))))
        self.memory = ctypes.create_string_buffer(1 << 16)
        self.counts = [0] * THREADS  # receives that each thread has posted and not completed

    def queue_pair(self):
        return c_void_p(self.sdr.sdr_qp_create(self.context, byref(QpAttr(12, 20, 4, 4, 1, 1, 0))))

    def register(self):
        region, key = c_void_p(self.sdr.sdr_mr_reg(self.context, self.memory, c_size_t(1 << 16), 1)), c_uint32()
        assert region.value and self.sdr.sdr_mr_lkey_get(region, byref(key)) == 0
        return region, key.value

    def post(self, qp, key):
        handle = c_void_p()
        code = self.sdr.sdr_recv_post(qp, byref(RecvWr(5000, key, ctypes.addressof(self.memory))), byref(handle))
        return code, handle

    def look(self, handle):
        bitmap, length = POINTER(c_uint8)(), c_size_t()
        assert self.sdr.sdr_recv_bitmap_get(handle, byref(bitmap), byref(length)) == 0
        assert length.value == 2 and bitmap[0] == bitmap[1] == 0

    def objects_of_their_own(self, _many, _number):
        for _ in range(ROUNDS):
            qp, (region, key) = self.queue_pair(), self.register()
            assert qp.value
            code, handle = self.post(qp, key)
            assert code == 0
            self.look(handle)
            assert self.sdr.sdr_recv_complete(handle) == 0
            assert self.sdr.sdr_mr_dereg(region) == 0 and self.sdr.sdr_qp_destroy(qp) == 0

    def one_queue_pair(self, many, number):
        """All post until no ID is left, which happens after exactly as many as there are."""
        region, key = self.register()
        many.together.wait()
        mine = []
        while True:
            code, handle = self.post(self.shared, key)
            if code == RETRY:
                break
            assert code == 0
            mine.append(handle)
        self.counts[number] = len(mine)
        many.together.wait()
        assert sum(self.counts) == IDS, self.counts
        for handle in mine:
            self.look(handle)
            assert self.sdr.sdr_recv_complete(handle) == 0
        assert self.sdr.sdr_mr_dereg(region) == 0

    def one_handle(self, many, number):
        """All complete the same receive: one does."""
        if number == 0:
            self.region, key = self.register()
            self.code, self.handle = self.post(self.shared, key)
        many.together.wait()
        assert self.code == 0
        self.counts[number] = self.sdr.sdr_recv_complete(self.handle)
        many.together.wait()
        assert sorted(self.counts) == [0] + [1] * (THREADS - 1), self.counts
        if number == 0:
            assert self.sdr.sdr_mr_dereg(self.region) == 0

    def on_one_queue_pair(self, body):
        """Each time a new one: what a queue pair without a peer has posted uses up its IDs."""
        for _ in range(ROUNDS):
            self.shared = self.queue_pair()
            assert self.shared.value
            Many(body)
            assert self.sdr.sdr_qp_destroy(self.shared) == 0


def main():
    bench = Bench(sys.argv[1])
    assert bench.context.value
    Many(bench.objects_of_their_own)
    bench.on_one_queue_pair(bench.one_queue_pair)
    bench.on_one_queue_pair(bench.one_handle)
    assert bench.sdr.sdr_context_destroy(bench.context) == 0
    print("done")


if __name__ == "__main__":
    main()
