// A map that counts from 0, with one entry where the lab does not say how many.

#define ARRAY(of, name)                      \
	struct {                             \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(max_entries, 1);          \
		__type(key, __u32);              \
		__type(value, of);               \
	} name SEC(".maps")
