# Hadoop flow sizes in Facebook's data centres (Roy et al., SIGCOMM 2015), in 1460 B packets.
# Table hadoop_ns2_1460. Columns: bytes, cumulative probability; linear between points.
1460 0
35040 0.1
43800 0.2
48180 0.3
48180 0.4
73000 0.5
77380 0.6
97820 0.7
175200 0.8
233600 0.9
292000 0.95
973820 0.96
9733820 0.97
97333820 0.99
486666180 1
