// Flowlets at a switch: a flow keeps its way while its packets follow closely, and draws another after a gap, or after so
// many bytes. The simulator's are in crates/tailcut-net/src/balance/flowlet.rs; the table has the same places for the same flows.

#include "array.h"
#include "packet.h"

struct settings {
	// A silence of at least so many nanoseconds lets a flow change its way.
	__u64 gap;
	// So many bytes on one way let it change as well; 0 counts none.
	__u64 bytes;
	__u32 entries;
	__u32 framing;
};

struct entry {
	struct bpf_spin_lock lock;
	// Any number; taken modulo the ways.
	__u32 choice;
	// When the last packet came.
	__u64 last;
	__u64 bytes;
	__u64 used;
};

ARRAY(struct settings, settings);

// The lab says how many entries there are.
ARRAY(struct entry, table);

static __always_inline __u64 mix(__u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

SEC("tc")
int choose(struct __sk_buff *skb)
{
	__u32 first = 0, place, choice, drawn;
	struct settings *set = bpf_map_lookup_elem(&settings, &first);
	struct packet packet;
	struct entry *entry;
	__u32 *count;
	__u64 now;

	if (!set || !set->entries || !read_packet(skb, set->framing, &packet))
		return NEXT;
	count = bpf_map_lookup_elem(&ways, &packet.to);
	if (!count || !*count)
		return NEXT;
	place = mix(packet.key) % set->entries;
	entry = bpf_map_lookup_elem(&table, &place);
	if (!entry)
		return NEXT;
	drawn = bpf_get_prandom_u32();
	now = bpf_ktime_get_ns();
	// Packets of one entry may come in by several ports at once.
	bpf_spin_lock(&entry->lock);
	if (!entry->used || (__s64)(now - entry->last) >= (__s64)set->gap || (set->bytes && entry->bytes >= set->bytes)) {
		entry->choice = drawn;
		entry->bytes = 0;
		entry->used = 1;
	}
	entry->last = now;
	entry->bytes += packet.bytes;
	choice = entry->choice;
	bpf_spin_unlock(&entry->lock);
	return take_way(skb, choice % *count);
}

char _license[] SEC("license") = "GPL";
