"""Make the pictures of the tutorials again: run the code of each page, and keep what it saves.

Run it in a clone: ``STANDOUT_DATA=../shared/data python docs/tutorials/pictures.py [PAGE ...]``
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PICTURES = HERE.parent / "images" / "tutorials"


def main() -> None:
    """Run the pages that are named, or all."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for page in [HERE / f"{name}.md" for name in sys.argv[1:]] or sorted(HERE.glob("*.md")):
        code = "\n".join(
            re.findall(
                r"^```python\n(.*?)^```",
                page.read_text("utf-8"),
                flags=re.MULTILINE | re.DOTALL,
            )
        )
        if ".savefig(" not in code:
            continue
        path = os.pathsep.join([str(HERE.parents[1] / "src"), str(HERE.parents[1])])
        environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg"}
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [sys.executable, "-c", code], cwd=folder, env=environment, check=True
            )
            for picture in Path(folder).glob("*.png"):
                (PICTURES / picture.name).write_bytes(picture.read_bytes())
                print(PICTURES / picture.name)


if __name__ == "__main__":
    main()
