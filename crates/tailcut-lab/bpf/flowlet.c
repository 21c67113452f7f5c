// Flowlets at a switch: a flow keeps its path while its packets follow closely, and draws another
// after a gap, or after a number of bytes. The simulator's are in
// crates/tailcut-net/src/balance/flowlet.rs; a flow has the same entry of the table in both.

#include "array.h"
#include "packet.h"

struct settings {
	// The gap after which a flow may change its path, in nanoseconds.
	__u64 gap;
	// The bytes on one path after which a flow may change it as well; 0: no limit.
	__u64 bytes;
	__u32 entries;
	__u32 framing;
};

struct entry {
	struct bpf_spin_lock lock;
	// A random number; its remainder selects the path.
	__u32 choice;
	// The time of the last packet.
	__u64 last;
	__u64 bytes;
	__u64 used;
};

ARRAY(struct settings, settings);

// The lab sets the number of entries.
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
	// Packets of one entry may arrive at several ports at once.
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
	return take_path(skb, choice % *count);
}

char _license[] SEC("license") = "GPL";
