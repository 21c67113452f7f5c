// TinyFlow at the ports of a switch that lead to hosts: what a host sends much of is an elephant, and draws another way every so
// many bytes; all else has no mark, and goes by the kernel's hash. The simulator's is in crates/tailcut-net/src/balance/tinyflow.

#include "array.h"
#include "packet.h"

// So many samples of a flow are remembered.
#define MOST_SAMPLES 8
// So many skips are drawn for one packet.
#define MOST_SKIPS 64

struct settings {
	// How long samples count, and after how long a silence an elephant is one no more: nanoseconds.
	__u64 window;
	__u64 forget;
	// Nanoseconds from one poll of the counters to the next; 0 where samples tell elephants.
	__u64 poll_every;
	// So many bytes make an elephant where counters are polled.
	__u64 elephant;
	// An elephant's bytes from one draw to the next.
	__u64 reroute_every;
	// So many samples make an elephant.
	__u32 samples;
	// Whether each host has a sampler of its own.
	__u32 per_host;
	// How many skips there are to draw from, less one.
	__u32 skips;
	__u32 framing;
};

ARRAY(struct settings, settings);

// Bytes from one sample to the next, to be drawn from: a power of two of them. The lab says how many.
ARRAY(__u64, skips);

// Bytes that are left until the next sample, for each host or for the switch. The lab says how many.
ARRAY(__s64, samplers);

struct flow {
	// When it was sampled: the n-th time at n, modulo the room.
	__u64 sampled[MOST_SAMPLES];
	// How often.
	__u64 samples;
	// Bytes counted for polls, and the number of the poll after which its last packet came.
	__u64 counted;
	__u64 polls;
	// When an elephant's last packet came; 0 if it is none.
	__u64 last;
	// Its bytes since it drew, and what it drew.
	__u64 bytes;
	__u64 draw;
};

// Flows that samples have fallen on, or all where they are counted. One that is silent makes room for another. A flow comes in by
// one port, so that there is hardly ever more than one processor at an entry; if there is, some bytes are not counted.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct flow);
} flows SEC(".maps");

// What is known of a flow, from now on at least.
static __always_inline struct flow *known(__u64 *key)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, key);
	struct flow nothing = {};

	if (flow)
		return flow;
	bpf_map_update_elem(&flows, key, &nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flows, key);
}

// Counts a packet; true when a sample falls on it.
static __always_inline int is_sampled(struct settings *set, struct packet *packet)
{
	__u32 place = set->per_host ? packet->key >> 48 : 0;
	__s64 *left = bpf_map_lookup_elem(&samplers, &place);
	__s64 before, rest;

	if (!left)
		return 0;
	before = __sync_fetch_and_add(left, -(__s64)packet->bytes);
	rest = before - packet->bytes;
	// Whoever makes it less than nothing draws. A packet is looked at once, however many samples fall into it.
	if (rest > 0 || before <= 0)
		return 0;
	for (int drawn = 0; drawn < MOST_SKIPS && rest <= 0; drawn++) {
		__u32 number = bpf_get_prandom_u32() & set->skips;
		__u64 *skip = bpf_map_lookup_elem(&skips, &number);

		if (skip)
			rest += *skip;
	}
	if (rest <= 0)
		rest = 1;
	__sync_fetch_and_add(left, rest - (before - packet->bytes));
	return 1;
}

// A flow is sampled; true when that makes it an elephant.
static __always_inline int note_sample(struct settings *set, struct flow *flow, __u64 now)
{
	__u64 first;

	flow->sampled[flow->samples % MOST_SAMPLES] = now;
	flow->samples++;
	if (flow->samples < set->samples)
		return 0;
	first = flow->samples - set->samples;
	return now - flow->sampled[first % MOST_SAMPLES] <= set->window;
}

// A flow is an elephant from now on: its first way is drawn with the packet in hand.
static __always_inline void begin(struct flow *flow, __u64 now)
{
	flow->last = now;
	flow->bytes = ~0ULL;
}

// Counts a packet, after it has made up for the polls since the flow's last; true when the latest finds the flow to be large.
static __always_inline int poll(struct settings *set, struct flow *flow, __u64 now, __u32 bytes)
{
	__u64 polls = now / set->poll_every, since = polls - flow->polls;
	int large = flow->counted >= set->elephant, found = 0;

	if (since == 1)
		found = large;
	if (since > 1) {
		// The first found it, the second forgot its counter.
		if (large && !flow->last)
			begin(flow, (flow->polls + 1) * set->poll_every);
		flow->counted = 0;
	}
	flow->polls = polls;
	flow->counted += bytes;
	return found;
}

SEC("tc")
int choose(struct __sk_buff *skb)
{
	__u32 first = 0, *count;
	struct settings *set = bpf_map_lookup_elem(&settings, &first);
	struct packet packet;
	struct flow *flow;
	int seen;
	__u64 now;

	if (!set || !read_packet(skb, set->framing, &packet))
		return NEXT;
	count = bpf_map_lookup_elem(&ways, &packet.to);
	if (!count)
		return NEXT;
	now = bpf_ktime_get_ns();
	if (set->poll_every) {
		flow = known(&packet.key);
		if (!flow)
			return NEXT;
		seen = poll(set, flow, now, packet.bytes);
	} else {
		int sampled = is_sampled(set, &packet);

		flow = sampled ? known(&packet.key) : bpf_map_lookup_elem(&flows, &packet.key);
		if (!flow)
			return NEXT;
		seen = sampled && note_sample(set, flow, now);
	}
	if (flow->last && (__s64)(now - flow->last) >= (__s64)set->forget)
		flow->last = 0;
	if (!flow->last && seen)
		begin(flow, now);
	if (!flow->last)
		return NEXT;
	if (flow->bytes >= set->reroute_every) {
		flow->draw = bpf_get_prandom_u32();
		flow->bytes = 0;
	}
	flow->bytes += packet.bytes;
	flow->last = now;
	return take_way(skb, flow->draw * *count >> 32);
}

char _license[] SEC("license") = "GPL";
