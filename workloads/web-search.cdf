# Web search flow sizes measured for DCTCP (Alizadeh et al., SIGCOMM 2010, Fig. 4),
# as tabulated in 1460 B packets for ns-2 by the pFabric line of simulations.
# Table websearch_dctcp_ns2_1460. Columns: bytes, cumulative probability; linear between points.
8760 0
8760 0.15
18980 0.2
27740 0.3
48180 0.4
77380 0.53
194180 0.6
973820 0.7
1946180 0.8
4866180 0.9
9733820 0.97
29200000 1
