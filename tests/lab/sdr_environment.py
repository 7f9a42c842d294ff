# SPDX-License-Identifier: BSD-3-Clause
"""What libsdr's environment variables make of a queue pair, as its information for the peer says: sdr_environment.py LIBRARY."""
import ctypes
import os
import struct
import sys
from ctypes import byref, c_size_t, c_void_p

from sdr_misuse import DevAttr, QpAttr

CHANNELS = 2
HEAD_BYTES = 76


def main():
    sdr = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
    for name in ("sdr_context_create", "sdr_qp_create"):
        getattr(sdr, name).restype = c_void_p

    def made(**environment):
        """Whether it is unreliable, generations, root keys, the multiple of message IDs that each has entries for, and bytes of the information; None: it was refused."""
        os.environ.update(environment)
        context = sdr.sdr_context_create(b"nic", byref(DevAttr(CHANNELS, 1)))
        qp = context and sdr.sdr_qp_create(c_void_p(context), byref(QpAttr(12, 20, 4, 4, 1, 1, 0)))
        answer = None
        if qp:
            size = c_size_t()
            assert sdr.sdr_qp_info_size_get(c_void_p(qp), byref(size)) == 0
            info = ctypes.create_string_buffer(size.value)
            assert sdr.sdr_qp_info_get(c_void_p(qp), info) == 0
            answer = (bool(info.raw[27]), *struct.unpack_from(">3I", info.raw, 52), size.value)
            assert sdr.sdr_qp_destroy(c_void_p(qp)) == 0
        assert not context or sdr.sdr_context_destroy(c_void_p(context)) == 0
        for name in environment:
            del os.environ[name]
        return answer

    def size(generations, keys):
        return HEAD_BYTES + 4 * (keys + CHANNELS * generations)

    for environment, wanted in (
            ({}, (False, 4, 4, 1, size(4, 4))),
            ({"SDR_USE_UC_QP": "1"}, (True, 4, 4, 1, size(4, 4))),
            ({"SDR_QP_NUM_GENERATIONS": "8"}, (False, 8, 8, 1, size(8, 8))),
            ({"SDR_RECV_CTX_N_ROOT_MKEYS": "2"}, (False, 4, 2, 1, size(4, 2))),
            ({"SDR_RECV_CTX_ROOT_MKEY_ENTRIES_FACTOR": "4"}, (False, 4, 4, 4, size(4, 4)))):
        answer = made(**environment)
        assert answer == wanted, (environment, answer, wanted)

    # Each is refused with a line that names it.
    for environment in ({"SDR_QP_NUM_GENERATIONS": "3"}, {"SDR_QP_NUM_GENERATIONS": "0"}, {"SDR_QP_NUM_GENERATIONS": "128"}, {"SDR_RECV_CTX_N_ROOT_MKEYS": "128"},
                        {"SDR_RECV_CTX_ROOT_MKEY_ENTRIES_FACTOR": "2048"}, {"SDR_SEND_CTX_SWR_BATCH_SIZE": "65"}, {"SDR_QP_NUM_GENERATIONS": "5000000000"},
                        {"SDR_DPA_TX_OFFLOADING_ENABLE": "1", "SDR_DPA_TX_NUM_WORKERS": "129"},
                        {"SDR_QP_NUM_GENERATIONS": "many"}, {"SDR_RECV_CTX_N_ROOT_MKEYS": "0"},
                        {"SDR_RECV_CTX_ROOT_MKEY_ENTRIES_FACTOR": "3"}, {"SDR_SEND_CTX_SWR_BATCH_SIZE": "0"},
                        {"SDR_SEND_CTX_SWR_BATCH_SIZE": "4x"}, {"SDR_NO_RC_RNR_RETRY": "no"},
                        {"SDR_DPA_TX_OFFLOADING_ENABLE": "1", "SDR_DPA_TX_NUM_WORKERS": "0"}):
        read_end, write_end = os.pipe()
        kept = os.dup(2)
        os.dup2(write_end, 2)
        answer = made(**environment)
        os.dup2(kept, 2)
        os.close(kept)
        os.close(write_end)
        said = os.read(read_end, 65536).decode()
        os.close(read_end)
        wrong = [*environment][-1]
        assert answer is None and said.count("\n") == 1 and said.startswith("sdr: sdr_") and wrong in said, (environment, answer, said)
    print("obeyed")


if __name__ == "__main__":
    main()
