"""Runs of the kernel lab that no kernel has carried."""

import json
from typing import Any


def measured(demand: dict[str, Any], slower: float = 1.5) -> dict[str, Any]:
    """What a run would have measured if each flow took so many times its ideal; no kernel is asked."""
    flows = [
        {
            "index": index,
            "connect_ns": 1,
            "fct_ns": int(slower * flow["ideal_ps"] / 1000),
            "fct_ack_ns": int(slower * flow["ideal_ack_ps"] / 1000),
            "data_packets": 1,
            "retransmissions": 0,
            "timeouts": 0,
            "needless_retransmissions": 0,
            "delivered_in_arrivals": flow["bytes"],
        }
        for index, flow in enumerate(demand["flows"])
    ]
    whole: dict[str, Any] = json.loads(
        json.dumps(
            {
                "flows": flows,
                "tiers": [],
                "end_ns": 10**9,
                "packet_hops": 1,
                "dropped": 0,
                "lost_on_links": 0,
                "unknown": ["fast_recoveries", "recoveries_undone"],
            }
        )
    )
    return whole
