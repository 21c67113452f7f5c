// DCTCP (RFC 8257) as a congestion control of the kernel: the window falls in proportion to the share of bytes that met
// congestion. Growth and the reaction to loss are reno's (RFC 5681). The simulator's is in
// crates/tailcut-net/src/transport/tcp/congestion/dctcp.rs.

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "array.h"

// What is used of the kernel's structures. Where it lies in them, the loader finds out from the running kernel.
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

// Numbers that the kernel has in headers of its own.
#define CA_ACK_ECE 4
#define ACK_TIMER 2
#define ACK_NOW 16
#define DEMAND_CWR 4
#define NEEDS_ECN 2

// Shares are counted in parts of this.
#define ONE_BITS 20
// Weights, in parts of this.
#define WEIGHT_BITS 16

struct settings {
	// The weight of the latest window in the estimate.
	__u32 g;
	// The estimate of a new connection.
	__u32 initial_alpha;
};

ARRAY(struct settings, settings);

// What a connection remembers, in the room that the kernel has for it.
struct dctcp {
	// The estimated share of bytes that met congestion (`DCTCP.Alpha`).
	__u32 alpha;
	// All before it is acknowledged.
	__u32 una;
	// Bytes acknowledged in this observation window, and those of them with an echo.
	__u32 acknowledged;
	__u32 marked;
	// Where the observation window ends (`DCTCP.WindowEnd`).
	__u32 window_end;
	// Whether the last packet received had met congestion (`DCTCP.CE`), and what was expected after it.
	__u32 met;
	__u32 expected;
};

static __always_inline struct tcp_sock *tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct dctcp *own(struct sock *sk)
{
	void *room = tcp(sk)->inet_conn.icsk_ca_priv;

	// The compiler is not to make one access of the place and of what is read there: the loader could not move it.
	barrier_var(room);
	return room;
}

SEC("struct_ops/start")
void BPF_PROG(start, struct sock *sk)
{
	struct dctcp *state = own(sk);
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

// Section 3.3, steps 1 to 8: the share of one window of data enters the estimate.
SEC("struct_ops/observe")
void BPF_PROG(observe, struct sock *sk, __u32 flags)
{
	struct dctcp *state = own(sk);
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

// Step 9 where marks ask for less; half of the window where something was lost (section 3.5). Two segments at least.
SEC("struct_ops/threshold")
__u32 BPF_PROG(threshold, struct sock *sk)
{
	__u32 window = tcp(sk)->snd_cwnd, left;

	if (tcp(sk)->lost_out)
		left = window / 2;
	else
		left = window - ((__u64)window * own(sk)->alpha >> (ONE_BITS + 1));
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

// Whether acknowledgements have an echo from now on.
static __always_inline void echo(struct tcp_sock *tp, int met)
{
	if (met)
		tp->ecn_flags |= DEMAND_CWR;
	else
		tp->ecn_flags &= ~DEMAND_CWR;
}

// Section 3.2: an echo says whether the packets that it acknowledges have met congestion, so that an acknowledgement that waits
// goes out before a packet that has fared otherwise is counted in, and one of that packet at once.
SEC("struct_ops/received")
void BPF_PROG(received, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp(sk);
	struct dctcp *state = own(sk);
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

// The lab writes a name of its own in the place of this one, which has as many letters as there may be.
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
