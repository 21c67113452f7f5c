// A map with keys from 0 on. It has one entry unless the lab sets the number.

#define ARRAY(of, name)                      \
	struct {                             \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(max_entries, 1);          \
		__type(key, __u32);              \
		__type(value, of);               \
	} name SEC(".maps")
