"""Write the table of *Evidence* from reproduction.json: ``python docs/data/evidence.py`` after ``make reproduce``."""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "evidence.md"
PLACE = re.compile(r"(?<=<!-- reproduction -->\n).*?(?=<!-- end -->)", flags=re.DOTALL)


def table() -> str:
    """Return the claims of each experiment, and how they were made."""
    summary = json.loads((HERE / "reproduction.json").read_text("utf-8"))
    lines = [
        "",
        "| experiment | in the paper | claims reproduced | not reproduced |",
        "|---|---|---|---|",
    ]
    sums = [0, 0]
    for experiment in summary["experiments"].values():
        verdicts = [claim["verdict"] for claim in experiment["claims"].values()]
        counts = [verdicts.count("reproduced"), verdicts.count("not reproduced")]
        sums = [first + second for first, second in zip(sums, counts, strict=True)]
        lines.append(
            f"| {experiment['title']} | {experiment['paper']} | {counts[0]} | {counts[1]} |"
        )
    lines += [f"| all | | {sums[0]} | {sums[1]} |", "", f"*{summary['made with']}.*", ""]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(PLACE.sub(lambda _: table(), text), "utf-8")
