/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries of queues as the NIC reads and writes them: mlx5's formats, big-endian. */
#ifndef ROCEBOX_FLEXIO_DEV_QUEUE_TYPES_H
#define ROCEBOX_FLEXIO_DEV_QUEUE_TYPES_H

#include <stdint.h>

#ifndef _LINUX_TYPES_H
typedef uint64_t __be64;
typedef uint32_t __be32;
typedef uint16_t __be16;
#endif

#define ROCEBOX_DPA_ENTRY __attribute__((packed, aligned(8)))

/* A send WQE takes blocks of 64 bytes, each of so many segments: 1 << this. */
#define LOG_SQE_NUM_SEGS 2

struct flexio_dev_eqe {
  uint8_t rsvd00, type, rsvd02, sub_type;
  uint8_t rsvd4[28];
  struct {
    __be32 rsvd00[6];
    __be32 cqn; /* 24 bits */
  } event_data;
  __be16 rsvd3c;
  uint8_t signature, owner;
} ROCEBOX_DPA_ENTRY;

/* The fields at 36 and 52 have had two names each. */
struct flexio_dev_cqe64 {
  __be32 rsvd00[5];
  __be16 csum_ok;
  uint8_t rsvd22[2];
  __be32 rsvd24[2];
  __be32 srqn_uidx;
  union {
    struct {
      __be32 imm_inval_pkey;
      __be32 rsvd40;
    };
    __be32 rsvd36[2];
  };
  __be32 byte_cnt;
  __be32 rsvd48;
  union {
    struct {
      uint8_t hw_err_syndrome, rsvd50, vendor_err_synd, syndrome;
    };
    __be32 err_syndrome;
  };
  union {
    struct {
      uint8_t sop_rdrop; /* opcode of a send */
      uint8_t qpn24[3];
    };
    __be32 qpn; /* its low 24 bits */
  };
  __be16 wqe_counter;
  union {
    uint8_t signature;
    uint8_t validity_iteration_count;
  };
  volatile uint8_t op_own; /* opcode in the upper four bits, owner in the lowest */
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_mini_cqe64 {
  __be64 mini_cqe[7];
  uint8_t rsvd0[6];
  uint8_t validity_iteration_count;
  uint8_t num_and_type;
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_wqe_mem_ptr_send_data_seg {
  __be32 byte_count, lkey;
  __be64 addr;
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_wqe_inline_send_data_seg {
  __be32 byte_count; /* with the highest bit set */
  __be32 data_and_padding[3];
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_wqe_rcv_data_seg {
  __be32 byte_count, lkey;
  __be64 addr;
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_wqe_shared_receive_seg {
  uint8_t rsvd0[2];
  __be16 next_wqe_index;
  uint8_t signature;
  uint8_t rsvd1[11];
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_wqe_ctrl_seg {
  __be32 idx_opcode, qpn_ds, signature_fm_ce_se;
  __be32 general_id; /* immediate data, or a key to invalidate */
} ROCEBOX_DPA_ENTRY;

typedef enum {
  FLEXIO_ETH_SEG_L4CS = 0x8000,
  FLEXIO_ETH_SEG_L3CS = 0x4000,
  FLEXIO_ETH_SEG_L4CS_INNER = 0x2000,
  FLEXIO_ETH_SEG_L3CS_INNER = 0x1000,
  FLEXIO_ETH_SEG_TRAILER_ALIGN = 0x0200,
  FLEXIO_ETH_SEG_SWP_OUTER_L4_TYPE = 0x0040,
  FLEXIO_ETH_SEG_SWP_OUTER_L3_TYPE = 0x0020,
  FLEXIO_ETH_SEG_SWP_INNER_L4_TYPE = 0x0002,
  FLEXIO_ETH_SEG_SWP_INNER_L3_TYPE = 0x0001
} flexio_dev_wqe_eth_seg_cs_swp_flags_t;

struct flexio_dev_wqe_eth_seg {
  __be32 rsvd0;
  __be16 cs_swp_flags, mss;
  __be32 rsvd2;
  __be16 inline_hdr_bsz;
  uint8_t inline_hdrs[2];
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_wqe_inline_data_seg {
  uint8_t inline_data[16];
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_wqe_rdma_seg {
  __be64 raddr;
  __be32 rkey, rsvd0;
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_wqe_atomic_seg {
  __be64 swap_or_add_data, compare_data;
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_wqe_transpose_seg {
  uint8_t rsvd0[3], element_size;
  uint8_t rsvd1, num_of_cols, rsvd2, num_of_rows;
  uint8_t rsvd4[8];
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_wqe_wait_on_data_seg {
  uint8_t rsvd0[3], op_inv;
  uint32_t lkey, va_63_32, va_31_3_fail_act;
} ROCEBOX_DPA_ENTRY;

struct flexio_dev_wqe_wait_on_data_data_seg {
  __be64 data, data_mask;
} ROCEBOX_DPA_ENTRY;

/* A datagram's address in three segments, each seen by the name of its own: s1, s2, s3. */
struct flexio_dev_wqe_datagram_seg {
  union {
    struct {
      union {
        struct {
          __be32 qkey, reserved;
        } qkey;
        __be64 dc_key;
      } key;
      __be32 ext_dqp_dct;
      uint8_t stat_rate_sl, fl_mlid;
      __be16 rlid;
    } s1;
    struct {
      uint8_t reserved0[4], rmac[6], tclass, hop_limit;
      __be32 grh_gid_fl;
    } s2;
    struct {
      uint8_t rgid[16];
    } s3;
  };
} ROCEBOX_DPA_ENTRY;

/* One of a send WQE's segments of 16 bytes. */
union flexio_dev_sqe_seg {
  struct flexio_dev_wqe_ctrl_seg ctrl;
  struct flexio_dev_wqe_eth_seg eth;
  struct flexio_dev_wqe_inline_data_seg inline_data;
  struct flexio_dev_wqe_rdma_seg rdma;
  struct flexio_dev_wqe_mem_ptr_send_data_seg mem_ptr_send_data;
  struct flexio_dev_wqe_inline_send_data_seg inline_send_data;
  struct flexio_dev_wqe_atomic_seg atomic;
  struct flexio_dev_wqe_transpose_seg transpose;
  struct flexio_dev_wqe_shared_receive_seg shared_receive;
  struct flexio_dev_wqe_wait_on_data_seg wait_on_data;
  struct flexio_dev_wqe_wait_on_data_data_seg wait_on_data_data;
  struct flexio_dev_wqe_datagram_seg adres_vector;
};

#endif
