"""python -m benchmarks lists|ranks|offpolicy|grid|start|stream|scale|pairs|design|trace [--json] [--rounds N], or page: all of them, into docs/performance.md.

page --only offpolicy|start|stream renews one section of the page.
"""

from __future__ import annotations

import argparse
import importlib
import json


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "workload",
        choices=["lists", "ranks", "offpolicy", "grid", "start", "stream", "scale", "pairs", "design", "trace", "page"],
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--rounds", type=int, help="interleaved rounds")
    parser.add_argument("--only", choices=["offpolicy", "start", "stream"], help="of page: the section to renew")
    parser.add_argument("--scale", type=float, help="of stream, scale and design: a share of their size")
    parser.add_argument("--keep", action="store_true", help="of scale: write benchmarks/scale.json")
    arguments = parser.parse_args()
    options: dict[str, float] = {} if arguments.rounds is None else {"rounds": arguments.rounds}
    options |= {} if arguments.scale is None else {"scale": arguments.scale}
    options |= {"keep": True} if arguments.keep else {}
    if arguments.workload == "page":
        from benchmarks import page

        page.write() if arguments.only is None else page.renew(arguments.only)
        return
    found = importlib.import_module(f"benchmarks.{arguments.workload}").run(**options)
    if arguments.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
