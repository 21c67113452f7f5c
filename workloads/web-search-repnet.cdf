# Web search flow sizes (Alizadeh et al., SIGCOMM 2010) as used on the RepNet testbed
# (Liu et al.), tabulated there in units of 1024 bytes with a point of its own at 100 KiB.
# Table websearch_repnet_kb. Columns: bytes, cumulative probability; linear between points.
0 0
6144 0.15
13312 0.2
19456 0.3
33792 0.4
54272 0.53
102400 0.58
136192 0.6
683008 0.7
1364992 0.8
3412992 0.9
6827008 0.97
20480000 1
