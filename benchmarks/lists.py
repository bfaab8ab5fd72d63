"""Workload A: 17 metrics from top-100 lists. Ratios are peer / truerank, so larger is better for us."""

from __future__ import annotations

from typing import Any

from benchmarks.measure import Contender, ratios

KERNEL_PEERS = {"ranx": 20_000, "pytrec_eval": 20_000}
END_TO_END_PEERS = {"rectools": 100_000}


def run(*, n_users: int = 100_000, rounds: int = 5) -> dict[str, Any]:
    """Kernel against the peers' computation on their own prepared input; end to end from one shuffled table."""
    found: dict[str, Any] = {"workload": "lists", "users": n_users, "rows": 100 * n_users, "peers": {}}
    for name, peers in (("truerank", KERNEL_PEERS), ("truerank-end-to-end", END_TO_END_PEERS)):
        ours = Contender(name, n_users)
        for peer, most in peers.items():
            other = Contender(peer, min(most, n_users))
            found["peers"][peer] = {"against": name, **ratios(ours.run, other.run, rounds)}
            other.close()
        found[name] = {"us_per_user": 1e6 * min(ours.run()["wall"] for _ in range(rounds))}
        ours.close()
    found["end_to_end_ns_per_row"] = round(10 * found["truerank-end-to-end"]["us_per_user"], 1)
    found["goals"] = {
        "kernel >= 100x ranx, by processor time": found["peers"]["ranx"]["ratio_cpu"] >= 100,
        "kernel >= 60x pytrec_eval, by processor time": found["peers"]["pytrec_eval"]["ratio_cpu"] >= 60,
        "end to end <= 100 ns per row": found["end_to_end_ns_per_row"] <= 100,
        "end to end >= 3x RecTools, by the clock": found["peers"]["rectools"]["ratio_wall"] >= 3,
    }
    return found
