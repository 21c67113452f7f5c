# Cache follower flow sizes in Facebook's data centres (Roy et al., SIGCOMM 2015), in 1460 B packets.
# Table cachefollower_ns2_1460. Columns: bytes, cumulative probability; linear between points.
1460 0
1460 0.35
2920 0.4
10220 0.46
18980 0.5
97820 0.6
194180 0.7
973820 0.78
1946180 0.8
2920000 0.9
3893820 0.99
48666180 1
