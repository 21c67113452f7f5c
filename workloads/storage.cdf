# Storage flow sizes in Alibaba's data centres, as tabulated for HPCC (Li et al., SIGCOMM 2019).
# Table alistorage2019_bytes. Columns: bytes, cumulative probability; linear between points.
0 0
4000 0.2293
8000 0.6921
16000 0.8061
32000 0.9047
64000 0.9353
128000 0.9677
256000 0.9753
2000000 1
