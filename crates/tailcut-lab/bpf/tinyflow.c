// TinyFlow at the ports of a switch that lead to hosts: a flow of many bytes is an elephant, and
// draws another path every `reroute_every` bytes. All other packets have no mark and follow the
// kernel's hash. The simulator's is in crates/tailcut-net/src/balance/tinyflow.

#include "array.h"
#include "packet.h"

// The number of samples stored per flow.
#define MAX_SAMPLES 8
// The most skips drawn for one packet.
#define MAX_SKIPS 64

struct settings {
	// The age up to which samples count, and the silence after which an elephant is none any
	// more, in nanoseconds.
	__u64 window;
	__u64 forget;
	// The interval of the counters' polls in nanoseconds; 0 if samples detect elephants.
	__u64 poll_every;
	// The bytes of an elephant, if counters are polled.
	__u64 elephant;
	// The bytes of an elephant between two draws.
	__u64 reroute_every;
	// The samples of an elephant.
	__u32 samples;
	// Whether each host has a sampler of its own.
	__u32 per_host;
	// The number of skips to draw from, minus one.
	__u32 skips;
	__u32 framing;
};

ARRAY(struct settings, settings);

// Skips to draw from: bytes between two samples. The lab sets their number, a power of two.
ARRAY(__u64, skips);

// The bytes left until the next sample, per host or per switch. The lab sets their number.
ARRAY(__s64, samplers);

struct flow {
	// The times of samples: the n-th at n, modulo the number stored.
	__u64 sampled[MAX_SAMPLES];
	// The number of samples.
	__u64 samples;
	// The bytes of the current poll interval, and the interval's number.
	__u64 counted;
	__u64 polls;
	// The time of an elephant's last packet; 0 if the flow is none.
	__u64 last;
	// The bytes since the last draw, and the number drawn.
	__u64 bytes;
	__u64 draw;
};

// Flows with samples, or all flows if counters are polled. A silent flow is evicted first. A flow
// arrives at one port, so an entry is hardly ever updated by two CPUs at once; if it is, some bytes
// are not counted.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct flow);
} flows SEC(".maps");

// Finds a flow, or adds it.
static __always_inline struct flow *find_or_add_flow(__u64 *key)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, key);
	struct flow nothing = {};

	if (flow)
		return flow;
	bpf_map_update_elem(&flows, key, &nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flows, key);
}

// Counts a packet; returns whether a sample falls on it.
static __always_inline int is_sampled(struct settings *set, struct packet *packet)
{
	__u32 place = set->per_host ? packet->key >> 48 : 0;
	__s64 *left = bpf_map_lookup_elem(&samplers, &place);
	__s64 before, rest;

	if (!left)
		return 0;
	before = __sync_fetch_and_add(left, -(__s64)packet->bytes);
	rest = before - packet->bytes;
	// The packet that exhausts the bytes draws. A packet counts once, however many samples fall
	// on it.
	if (rest > 0 || before <= 0)
		return 0;
	for (int drawn = 0; drawn < MAX_SKIPS && rest <= 0; drawn++) {
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

// Adds a sample; returns whether it makes the flow an elephant.
static __always_inline int completes_elephant(struct settings *set, struct flow *flow, __u64 now)
{
	__u64 first;

	flow->sampled[flow->samples % MAX_SAMPLES] = now;
	flow->samples++;
	if (flow->samples < set->samples)
		return 0;
	first = flow->samples - set->samples;
	return now - flow->sampled[first % MAX_SAMPLES] <= set->window;
}

// Makes a flow an elephant: the current packet draws its first path.
static __always_inline void start_elephant(struct flow *flow, __u64 now)
{
	flow->last = now;
	flow->bytes = ~0ULL;
}

// Counts a packet, after catching up on the polls since the flow's last; returns whether the latest
// poll finds the flow to be large.
static __always_inline int count_polled(struct settings *set, struct flow *flow, __u64 now, __u32 bytes)
{
	__u64 polls = now / set->poll_every, since = polls - flow->polls;
	int large = flow->counted >= set->elephant, found = 0;

	if (since == 1)
		found = large;
	if (since > 1) {
		// The first poll found the flow, the second reset its counter.
		if (large && !flow->last)
			start_elephant(flow, (flow->polls + 1) * set->poll_every);
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
		flow = find_or_add_flow(&packet.key);
		if (!flow)
			return NEXT;
		seen = count_polled(set, flow, now, packet.bytes);
	} else {
		int sampled = is_sampled(set, &packet);

		flow = sampled ? find_or_add_flow(&packet.key) : bpf_map_lookup_elem(&flows, &packet.key);
		if (!flow)
			return NEXT;
		seen = sampled && completes_elephant(set, flow, now);
	}
	if (flow->last && (__s64)(now - flow->last) >= (__s64)set->forget)
		flow->last = 0;
	if (!flow->last && seen)
		start_elephant(flow, now);
	if (!flow->last)
		return NEXT;
	if (flow->bytes >= set->reroute_every) {
		flow->draw = bpf_get_prandom_u32();
		flow->bytes = 0;
	}
	flow->bytes += packet.bytes;
	flow->last = now;
	return take_path(skb, flow->draw * *count >> 32);
}

char _license[] SEC("license") = "GPL";
