// The header fields that switches read, and the maps that the lab fills: shared by the programs
// that choose paths.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

// No verdict on the packet: further programs may run.
#define NEXT (-1)

#define FRAGMENT 0x3fff

// A TCP packet, as the simulator's switches see it.
struct packet {
	// Sending and receiving host, source and destination port: 16 bits each.
	__u64 key;
	// The destination address, in network order.
	__be32 to;
	// The size on the wire in bytes.
	__u32 bytes;
};

// The number of equal-cost paths to an address, if there are several. The lab fills it, and updates
// it when routes change.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __be32);
	__type(value, __u32);
} ways SEC(".maps");

// Returns the number of the host with this address.
static __always_inline __u64 host_of(__be32 address)
{
	return (__u16)(bpf_ntohl(address) - 1);
}

// Parses a packet; returns 0 unless it is TCP. `framing`: bytes around a datagram on the wire.
static __always_inline int read_packet(struct __sk_buff *skb, __u32 framing, struct packet *packet)
{
	struct iphdr ip;
	__be16 ports[2];

	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return 0;
	if (ip.protocol != IPPROTO_TCP || ip.frag_off & bpf_htons(FRAGMENT))
		return 0;
	if (bpf_skb_load_bytes(skb, ETH_HLEN + 4 * ip.ihl, ports, sizeof(ports)))
		return 0;
	packet->key = host_of(ip.saddr) << 48 | host_of(ip.daddr) << 32 | (__u64)bpf_ntohs(ports[0]) << 16 | bpf_ntohs(ports[1]);
	packet->to = ip.daddr;
	packet->bytes = skb->len - ETH_HLEN + framing;
	return 1;
}

// Sends the packet by the path of this number, counted from 0: a rule maps each mark to a route.
static __always_inline int take_path(struct __sk_buff *skb, __u32 way)
{
	skb->mark = 1 + way;
	return NEXT;
}
