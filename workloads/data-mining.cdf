# Data mining flow sizes measured for VL2 (Greenberg et al., SIGCOMM 2009, Fig. 2),
# as tabulated in 1460 B packets for ns-2 by the pFabric line of simulations.
# Table datamining_vl2_ns2_1460. Columns: bytes, cumulative probability; linear between points.
1460 0
1460 0.5
2920 0.6
4380 0.7
10220 0.8
389820 0.9
3076220 0.95
97333820 0.99
973333820 1
