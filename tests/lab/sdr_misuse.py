# SPDX-License-Identifier: BSD-3-Clause
"""Calls of libsdr that are mistakes, each of which must give SDR_ERROR or NULL and one line: sdr_misuse.py LIBRARY."""
import ctypes
import os
import sys
from ctypes import POINTER, Structure, byref, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p

ERROR = 1


class DevAttr(Structure):
    _fields_ = [("num_channels", c_uint32), ("log_max_qps", c_uint32)]


class QpAttr(Structure):
    _fields_ = [("chunk_log", c_uint32), ("in_flight_log", c_size_t), ("messages_log", c_uint32), ("mtu", c_uint32),
                ("send", c_uint8), ("recv", c_uint8), ("rate_limit", c_uint32)]


class SendWr(Structure):
    _fields_ = [("opcode", c_uint32), ("imm", c_uint32), ("length", c_uint32), ("lkey", c_uint32), ("addr", c_uint64),
                ("offset", c_uint64)]


class RecvWr(Structure):
    _fields_ = [("max_length", c_uint32), ("lkey", c_uint32), ("addr", c_uint64)]


def main():
    # The device program finds the device API in the library.
    sdr = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
    for name in ("sdr_context_create", "sdr_qp_create", "sdr_mr_reg", "sdr_reliable_create"):
        getattr(sdr, name).restype = c_void_p
    lines = 0
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    kept = os.dup(2)
    os.dup2(write_end, 2)

    def mistake(result, wanted, what):
        nonlocal lines
        said = os.read(read_end, 65536).decode() if result == wanted else ""
        if result != wanted or said.count("\n") != 1 or not said.startswith("sdr: sdr_"):
            os.dup2(kept, 2)
            raise SystemExit(f"{what}: {result!r}, {said!r}")
        lines += 1

    attr = DevAttr(2, 1)
    mistake(sdr.sdr_context_create(None, byref(attr)), None, "no name")
    mistake(sdr.sdr_context_create(b"nic", None), None, "no attributes")
    mistake(sdr.sdr_context_create(b"nic", byref(DevAttr(0, 0))), None, "no channels")
    mistake(sdr.sdr_context_create(b"nic", byref(DevAttr(1000, 0))), None, "too many channels")
    context = c_void_p(sdr.sdr_context_create(b"nic", byref(attr)))
    good = QpAttr(12, 20, 4, 4, 1, 1, 0)
    for bad in (QpAttr(9, 20, 4, 4, 1, 1, 0), QpAttr(12, 20, 4, 7, 1, 1, 0), QpAttr(12, 20, 4, 4, 0, 0, 0),
                QpAttr(12, 63, 4, 4, 1, 1, 0), QpAttr(12, 10, 4, 4, 1, 1, 0), QpAttr(12, 50, 25, 4, 1, 1, 0)):
        mistake(sdr.sdr_qp_create(context, byref(bad)), None, "attributes of a queue pair")
    qp = c_void_p(sdr.sdr_qp_create(context, byref(good)))
    memory = ctypes.create_string_buffer(1 << 16)
    mistake(sdr.sdr_mr_reg(context, None, c_size_t(10), 0), None, "no memory")
    mistake(sdr.sdr_mr_reg(context, memory, c_size_t(0), 0), None, "empty memory")
    mistake(sdr.sdr_mr_reg(context, memory, c_size_t(10), 6), None, "flags")
    local = c_void_p(sdr.sdr_mr_reg(context, memory, c_size_t(1 << 16), 0))
    remote = c_void_p(sdr.sdr_mr_reg(context, memory, c_size_t(1 << 16), 1))
    lkey, rkey = c_uint32(), c_uint32()
    assert sdr.sdr_mr_lkey_get(local, byref(lkey)) == 0 and sdr.sdr_mr_lkey_get(remote, byref(rkey)) == 0
    handle, at = c_void_p(), ctypes.addressof(memory)
    mistake(sdr.sdr_send_post(qp, byref(SendWr(0, 0, 100, lkey, at, 0)), byref(handle)), ERROR, "send before connect")
    mistake(sdr.sdr_streaming_send_start(qp, memory, byref(handle)), ERROR, "stream before connect")
    for wr in (RecvWr(0, rkey, at), RecvWr(1 << 17, rkey, at), RecvWr(100, lkey, at), RecvWr(100, 12345, at),
               RecvWr(100, rkey, at + (1 << 16) - 50)):
        mistake(sdr.sdr_recv_post(qp, byref(wr), byref(handle)), ERROR, "receive")
    mistake(sdr.sdr_recv_post(qp, None, byref(handle)), ERROR, "no request")
    for _ in range(16):
        assert sdr.sdr_recv_post(qp, byref(RecvWr(5000, rkey, at)), byref(handle)) == 0
    assert sdr.sdr_recv_post(qp, byref(RecvWr(5000, rkey, at)), byref(c_void_p())) == 2, "all IDs are taken"
    bitmap, length, bits = POINTER(c_uint8)(), c_size_t(), c_uint64()
    assert sdr.sdr_recv_bitmap_get(handle, byref(bitmap), byref(length)) == 0 and length.value == 2 and bitmap[0] == 0
    assert sdr.sdr_recv_imm_get(handle, byref(lkey)) == 2
    mistake(sdr.sdr_recv_bitmap_chunk_expand(handle, c_size_t(2), byref(bits)), ERROR, "no such chunk")
    mistake(sdr.sdr_send_poll(handle, byref(c_uint32()), None), ERROR, "a receive polled as a send")
    assert sdr.sdr_recv_complete(handle) == 0
    mistake(sdr.sdr_recv_complete(handle), ERROR, "completed twice")
    mistake(sdr.sdr_recv_bitmap_get(handle, byref(bitmap), byref(length)), ERROR, "a handle that is gone")
    for value in (0, 1, 0xDEADBEEF, at, 2**64 - 1, context.value, qp.value + 256):
        mistake(sdr.sdr_qp_destroy(c_void_p(value)), ERROR, f"{value:#x} as a queue pair")
        mistake(sdr.sdr_recv_complete(c_void_p(value)), ERROR, f"{value:#x} as a receive")
        mistake(sdr.sdr_mr_dereg(c_void_p(value)), ERROR, f"{value:#x} as memory")
    size = c_size_t()
    assert sdr.sdr_qp_info_size_get(qp, byref(size)) == 0
    info = ctypes.create_string_buffer(size.value)
    mistake(sdr.sdr_qp_connect(qp, info), ERROR, "info of zeros")
    mistake(sdr.sdr_qp_connect(qp, ctypes.create_string_buffer(b"SDR1" + bytes(200))), ERROR, "info of an earlier version")
    other = c_void_p(sdr.sdr_qp_create(context, byref(QpAttr(13, 20, 4, 4, 1, 1, 0))))
    assert sdr.sdr_qp_info_get(qp, info) == 0
    mistake(sdr.sdr_qp_connect(other, info), ERROR, "another chunk at the peer")
    mistake(sdr.sdr_qp_create(context, byref(good)), None, "more than log_max_qps")
    mistake(sdr.sdr_reliable_create(qp, None), None, "no attributes of reliability")
    assert sdr.sdr_qp_destroy(qp) == 0
    mistake(sdr.sdr_qp_info_get(qp, info), ERROR, "a queue pair that is gone")
    assert sdr.sdr_context_destroy(context) == 0
    mistake(sdr.sdr_mr_lkey_get(local, byref(lkey)), ERROR, "memory of a context that is gone")
    mistake(sdr.sdr_context_destroy(context), ERROR, "destroyed twice")
    again = c_void_p(sdr.sdr_context_create(b"nic", byref(attr)))
    assert sdr.sdr_context_destroy(again) == 0
    os.dup2(kept, 2)
    print(lines, "mistakes")


if __name__ == "__main__":
    main()
