"""Store the results of all calls as goldens: python -m tests.golden.house.make [GROUP ...].

Done once, before a rebuilding; afterwards only where a call is added, or where a result changes on purpose.
"""

from __future__ import annotations

import sys

from tests.golden.house.calls import CALLS, GROUPS, of_group
from tests.golden.house.compare import key_of
from tests.golden.house.files import TABLES, write
from tests.golden.house.run import run


def main() -> None:
    if len({call.id for call in CALLS}) < len(CALLS):
        raise SystemExit("two calls have the same id")
    for group in sys.argv[1:] or GROUPS:
        results = {call.id: run(call) for call in of_group(group)}
        for name, result in results.items():
            for kind in TABLES:
                keys = [key_of(row) for row in result.get(kind, [])]
                if len(set(keys)) < len(keys):
                    raise SystemExit(f"{name}: two {kind} have the same key")
            if ("refused" in result) != ("refused" in name or name == "exclude/error"):
                raise SystemExit(f"{name}: {result.get('refused', 'not refused')}")
        path = write(group, results)
        sys.stdout.write(f"{path.name}: {len(results)} calls, {path.stat().st_size / 1e3:,.0f} kB\n")


if __name__ == "__main__":
    main()
