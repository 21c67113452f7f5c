// DCTCP (RFC 8257) as a congestion control of the kernel: the window falls in proportion to the
// share of bytes that met congestion. Growth and the reaction to loss are reno's (RFC 5681). The
// simulator's DCTCP is in crates/tailcut-net/src/transport/tcp/congestion/dctcp.rs.

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "array.h"

// The fields of the kernel's structures that the program uses. The loader finds their offsets in
// the running kernel.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
};

struct inet_connection_sock {
	struct {
		__u8 pending;
	} icsk_ack;
	__u64 icsk_ca_priv[1];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 rcv_nxt;
	__u32 snd_cwnd;
	__u32 lost_out;
	__u8 ecn_flags;
};

enum tcp_ca_event {
	CA_EVENT_ECN_NO_CE = 4,
	CA_EVENT_ECN_IS_CE = 5,
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	char name[16];
	__u32 flags;
};

#pragma clang attribute pop

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

// Constants of the kernel's internal headers.
#define CA_ACK_ECE 4
#define ACK_TIMER 2
#define ACK_NOW 16
#define DEMAND_CWR 4
#define NEEDS_ECN 2

// The unit of shares: 2^-20.
#define ONE_BITS 20
// The unit of weights: 2^-16.
#define WEIGHT_BITS 16

struct settings {
	// The weight of the latest window in the estimate.
	__u32 g;
	// The estimate of a new connection.
	__u32 initial_alpha;
};

ARRAY(struct settings, settings);

// The state of a connection, in the private area that the kernel provides.
struct dctcp {
	// The estimated share of bytes that met congestion (`DCTCP.Alpha`).
	__u32 alpha;
	// The first byte that is not acknowledged.
	__u32 una;
	// Bytes acknowledged in this observation window, and those of them with an echo.
	__u32 acknowledged;
	__u32 marked;
	// The end of the observation window (`DCTCP.WindowEnd`).
	__u32 window_end;
	// Whether the last packet received was marked (`DCTCP.CE`), and the next byte expected
	// then.
	__u32 met;
	__u32 expected;
};

static __always_inline struct tcp_sock *tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct dctcp *dctcp_state(struct sock *sk)
{
	void *room = tcp(sk)->inet_conn.icsk_ca_priv;

	// The address must not be folded into the access to the field: the loader could not
	// relocate it.
	barrier_var(room);
	return room;
}

SEC("struct_ops/start")
void BPF_PROG(start, struct sock *sk)
{
	struct dctcp *state = dctcp_state(sk);
	__u32 first = 0;
	struct settings *set = bpf_map_lookup_elem(&settings, &first);

	state->alpha = set ? set->initial_alpha : 1 << ONE_BITS;
	state->una = tcp(sk)->snd_una;
	state->acknowledged = 0;
	state->marked = 0;
	state->window_end = tcp(sk)->snd_una;
	state->met = 0;
	state->expected = tcp(sk)->rcv_nxt;
}

// Section 3.3, steps 1 to 8: updates the estimate by the share of one window of data.
SEC("struct_ops/observe")
void BPF_PROG(observe, struct sock *sk, __u32 flags)
{
	struct dctcp *state = dctcp_state(sk);
	__u32 una = tcp(sk)->snd_una, bytes = una - state->una, first = 0;
	struct settings *set;
	__u64 share, alpha;

	state->una = una;
	state->acknowledged += bytes;
	if (flags & CA_ACK_ECE)
		state->marked += bytes;
	if ((__s32)(una - state->window_end) <= 0)
		return;
	set = bpf_map_lookup_elem(&settings, &first);
	if (!set)
		return;
	share = state->acknowledged ? ((__u64)state->marked << ONE_BITS) / state->acknowledged : 0;
	alpha = (__u64)state->alpha * ((1 << WEIGHT_BITS) - set->g) + share * set->g;
	state->alpha = alpha >> WEIGHT_BITS;
	state->acknowledged = 0;
	state->marked = 0;
	state->window_end = tcp(sk)->snd_nxt;
}

// Step 9 after marks; half of the window after a loss (section 3.5). At least two segments.
SEC("struct_ops/threshold")
__u32 BPF_PROG(threshold, struct sock *sk)
{
	__u32 window = tcp(sk)->snd_cwnd, left;

	if (tcp(sk)->lost_out)
		left = window / 2;
	else
		left = window - ((__u64)window * dctcp_state(sk)->alpha >> (ONE_BITS + 1));
	return left < 2 ? 2 : left;
}

SEC("struct_ops/grow")
void BPF_PROG(grow, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/undo")
__u32 BPF_PROG(undo, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

// Sets whether further ACKs carry an echo.
static __always_inline void echo(struct tcp_sock *tp, int met)
{
	if (met)
		tp->ecn_flags |= DEMAND_CWR;
	else
		tp->ecn_flags &= ~DEMAND_CWR;
}

// Section 3.2: an echo states whether the acknowledged packets were marked. Before a packet of the
// other state is counted, a delayed ACK is sent, and the ACK of that packet is sent at once.
SEC("struct_ops/received")
void BPF_PROG(received, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp(sk);
	struct dctcp *state = dctcp_state(sk);
	__u32 met;

	if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
		return;
	met = event == CA_EVENT_ECN_IS_CE;
	if (state->met != met) {
		if (tp->inet_conn.icsk_ack.pending & ACK_TIMER) {
			echo(tp, state->met);
			bpf_tcp_send_ack(tp, state->expected);
		}
		tp->inet_conn.icsk_ack.pending |= ACK_NOW;
	}
	state->expected = tp->rcv_nxt;
	state->met = met;
	echo(tp, met);
}

// The lab replaces this name, which has the greatest length that the kernel allows.
SEC(".struct_ops")
struct tcp_congestion_ops dctcp = {
	.init = (void *)start,
	.in_ack_event = (void *)observe,
	.ssthresh = (void *)threshold,
	.cong_avoid = (void *)grow,
	.undo_cwnd = (void *)undo,
	.cwnd_event = (void *)received,
	.name = "tailcut-by-name",
	.flags = NEEDS_ECN,
};

char _license[] SEC("license") = "GPL";
