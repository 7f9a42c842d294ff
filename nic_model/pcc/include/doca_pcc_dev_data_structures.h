/* SPDX-License-Identifier: BSD-3-Clause */
/* What events, contexts and results consist of, and the numbers in them. Events are read by the functions of
 * doca_pcc_dev_event.h alone: their layout is this emulator's own. */
#ifndef ROCEBOX_DOCA_PCC_DEV_DATA_STRUCTURES_H
#define ROCEBOX_DOCA_PCC_DEV_DATA_STRUCTURES_H

#include <stdint.h>

#include "rocebox_pcc_generation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of events. Bit N of a mask of events stands for kind N. */
typedef enum {
  DOCA_PCC_DEV_EVNT_NULL = 0,
  DOCA_PCC_DEV_EVNT_FW = 1,                   /* never comes */
  DOCA_PCC_DEV_EVNT_ROCE_CNP = 2,             /* the peer told of a congestion mark */
  DOCA_PCC_DEV_EVNT_ROCE_TX = 3,              /* packets have left */
  DOCA_PCC_DEV_EVNT_ROCE_ACK = 4,             /* the peer acknowledged */
  DOCA_PCC_DEV_EVNT_ROCE_NACK = 5,            /* the peer refused */
  DOCA_PCC_DEV_EVNT_RTT = 6,                  /* a probe's answer has come */
  DOCA_PCC_DEV_EVNT_ROCE_TX_FOR_ACK_NACK = 31 /* never comes: ConnectX-8's, of ACKs that left */
} doca_pcc_dev_event_type_enum;

/* Kinds of NACKs. */
typedef enum {
  DOCA_PCC_DEV_NACK_EVNT_NULL = 0,    /* an error that ends the connection */
  DOCA_PCC_DEV_NACK_EVNT_RNR = 1,     /* the receiver was not ready */
  DOCA_PCC_DEV_NACK_EVNT_OOS = 2,     /* out of sequence: packets are missing */
  DOCA_PCC_DEV_NACK_EVNT_DUP_READ = 3 /* never comes */
} doca_pcc_dev_nack_event_sub_type_enum;

/* ConnectX-9's, for internal use: opaque. */
struct pcc_dev_results_extra_t;
#if __NV_DPA >= __NV_DPA_CX9
typedef struct pcc_dev_results_extra_t doca_pcc_dev_results_extra_t;
#endif

/* What an event's handler decides. Before each call: the rate as it is, and no request. */
typedef struct doca_pcc_dev_results {
  uint32_t rate; /* share of the port's rate, from 1 to DOCA_PCC_DEV_MAX_RATE */
  union {
    uint32_t rtt_req; /* not 0: measure the flow's round-trip time */
    uint32_t probe_req;
  };
  uint32_t probe_type_slot; /* 0: there is one kind of probe here */
  uint32_t credits;         /* these two: of ConnectX-8, not looked at */
  uint32_t reload_credits;
  struct pcc_dev_results_extra_t* extra; /* of ConnectX-9; null, and not looked at */
} doca_pcc_dev_results_t;

/* Flags of TX events. */
#define DOCA_PCC_DEV_TX_FLAG_ACK_EXPECTED 1  /* never set */
#define DOCA_PCC_DEV_TX_FLAG_OVERLOADED 2    /* never set */
#define DOCA_PCC_DEV_TX_FLAG_RTT_REQ_SENT 4  /* the probe that was asked for has left */
#define DOCA_PCC_DEV_TX_FLAG_IS_REQUESTOR 32 /* never set */
#if __NV_DPA >= __NV_DPA_CX9
#define DOCA_PCC_DEV_QP_IS_REQUESTOR (1 << 5) /* never set */
#endif

/* Rates are shares of the port's, with so many bits of fraction. */
#define DOCA_PCC_DEV_LOG_MAX_RATE 20
#define DOCA_PCC_DEV_MAX_RATE (1u << DOCA_PCC_DEV_LOG_MAX_RATE)
/* That of a flow whose first event has not been handled. */
#define DOCA_PCC_DEV_DEFAULT_RATE (DOCA_PCC_DEV_MAX_RATE >> 8)

#define DOCA_PCC_DEV_MAX_NUM_USER_SLOTS 8
#define DOCA_PCC_DEV_MAX_NUM_ALGOS 8
#define DOCA_PCC_DEV_MAX_NUM_PARAMS_PER_ALGO 0x2C
#define DOCA_PCC_DEV_MAX_NUM_COUNTERS_PER_ALGO 63
/* The algorithm that needs no program, and its slot. */
#define DOCA_PCC_DEV_ALGO_SLOT_INTERNAL 15
#define DOCA_PCC_DEV_ALGO_INDEX_INTERNAL 15

/* A text is an address and its bytes, the final 0 counted or not. */
struct doca_pcc_dev_algo_meta_data {
  uint32_t algo_id;
  uint32_t algo_major_version;
  uint32_t algo_minor_version;
  uint32_t algo_desc_size;
  uint64_t algo_desc_addr;
};

/* Groups of counters, histograms, and counters for each thread: there are none here (doca_pcc_dev_algo_access.h). */
#define DOCA_PCC_DEV_MAX_NUM_COUNTER_GROUP 15
#define DOCA_PCC_DEV_MIN_NUM_COUNTER_GROUP 1
#define DOCA_PCC_DEV_DEFAULT_NUM_COUNTER_GROUP 2
#define DOCA_PCC_DEV_DEFAULT_COUNTER_GROUP_ID 0
#define DOCA_PCC_DEV_MAX_NUM_HISTOGRAMS DOCA_PCC_DEV_MAX_NUM_COUNTER_GROUP
#define DOCA_PCC_DEV_DEFAULT_NUM_HISTOGRAMS 0
#define DOCA_PCC_DEV_HISTOGRAM_MAX_BINS 32
#define DOCA_PCC_DEV_COUNTER_TYPE_ACCUMULATE 0u
#define DOCA_PCC_DEV_COUNTER_TYPE_MIN 1u
#define DOCA_PCC_DEV_COUNTER_TYPE_MAX 2u
typedef enum {
  DOCA_PCC_DEV_HISTOGRAM_MODE_LINEAR,
  DOCA_PCC_DEV_HISTOGRAM_MODE_EXPONENTIAL,
  DOCA_PCC_DEV_HISTOGRAM_MODE_FREE,
} doca_pcc_dev_histogram_mode_t;
typedef struct user_global_data_per_port_histogram_t* doca_pcc_dev_histogram_t;

/* Of every event. */
struct mlnx_cc_event_general_attr_t {
  uint32_t ev_type : 8;    /* doca_pcc_dev_event_type_enum */
  uint32_t ev_subtype : 8; /* of NACKs: doca_pcc_dev_nack_event_sub_type_enum */
#if __NV_DPA >= __NV_DPA_CX9
  uint32_t port_num : 3;
  uint32_t plane_num : 5; /* 0: there is one */
#elif __NV_DPA >= __NV_DPA_CX8
  uint32_t port_num : 4;
  uint32_t plane_num : 4; /* 0: there is one */
#else
  uint32_t port_num : 8;
#endif
  uint32_t flags : 8; /* of TX: DOCA_PCC_DEV_TX_FLAG_... */
};

/* What was sent since the flow's TX event before. */
struct mlnx_cc_roce_tx_cntrs_t {
  uint32_t sent_32bytes : 16; /* in units of 32 bytes, each packet rounded up */
  uint32_t sent_pkts : 16;
};

struct mlnx_cc_roce_tx_extra_t {
  uint32_t flow_qpn : 24;
  uint32_t reserved : 8;
};

struct mlnx_cc_ack_nack_cnp_extra_t {
  uint32_t num_coalesced : 16; /* events that have become this one */
  uint32_t reserved : 16;
};

/* What a program keeps of a flow: zeros when it is new, then as the program left it. */
struct mlnx_cc_algo_ctxt_t {
  uint32_t data[12];
};

struct mlnx_cc_attr_t {
  uint32_t algo_slot : 4; /* whose flow it is: 15, the internal algorithm's */
  uint32_t overload : 1;  /* events wait longer than they should */
  uint32_t reserved : 27;
};

struct mlnx_cc_event_t {
  struct mlnx_cc_event_general_attr_t general;
  uint32_t tag, serial, time, qpn;
  uint32_t first_time, first_serial;           /* of coalesced ones the first */
  struct mlnx_cc_roce_tx_cntrs_t sent;         /* TX */
  struct mlnx_cc_ack_nack_cnp_extra_t answers; /* ACK, NACK, CNP */
  /* RTT: what the notification point answered: three times in network order, or what its program wrote. */
  unsigned char answer[12];
  unsigned char dscp; /* of the flow */
  unsigned char reserved[3];
};

typedef struct mlnx_cc_event_general_attr_t doca_pcc_dev_event_general_attr_t;
typedef struct mlnx_cc_roce_tx_cntrs_t doca_pcc_dev_roce_tx_cntrs_t;
typedef struct mlnx_cc_roce_tx_extra_t doca_pcc_dev_roce_tx_extra_t;
typedef struct mlnx_cc_ack_nack_cnp_extra_t doca_pcc_dev_ack_nack_cnp_extra_t;
typedef struct mlnx_cc_algo_ctxt_t doca_pcc_dev_algo_ctxt_t;
typedef struct mlnx_cc_attr_t doca_pcc_dev_attr_t;
typedef struct mlnx_cc_event_t doca_pcc_dev_event_t;

/* The insides of NVIDIA's events by kind, opaque: names alone. */
typedef struct mlnx_cc_roce_tx_t doca_pcc_dev_roce_tx_t;
typedef struct mlnx_cc_ack_nack_cnp_t doca_pcc_dev_ack_nack_cnp_t;
typedef struct mlnx_cc_rtt_tstamp_t doca_pcc_dev_rtt_tstamp_t;
typedef struct mlnx_cc_fw_data_t doca_pcc_dev_fw_data_t;
typedef union mlnx_cc_event_spec_attr_t doca_pcc_dev_event_spec_attr_t;
#if __NV_DPA >= __NV_DPA_CX8
typedef struct mlnx_cc_event_general_dword2_t doca_pcc_dev_event_general_dword2_t;
typedef struct mlnx_cc_rtt_spec_data0_t doca_pcc_dev_rtt_spec_data0_t;
typedef struct mlnx_cc_rtt_spec_data1_t doca_pcc_dev_rtt_spec_data1_t;
typedef struct mlnx_cc_rtt_spec_data2_t doca_pcc_dev_rtt_spec_data2_t;
typedef struct mlnx_cc_rtt_spec_data3_t doca_pcc_dev_rtt_spec_data3_t;
#endif

#ifdef __cplusplus
}
#endif
#endif
