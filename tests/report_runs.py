"""What the tests of the report share: fits, and findings with names of all kinds."""

import numpy as np

from standout import ContrastivePCA, DiscriminativePCA, KernelContrastivePCA, KernelDiscriminativePCA
from standout._messages import Message
from standout.report import examine

HOSTILE = [
    "<script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "'><svg onload=window.hacked=1>",
    "${window.hacked=1}",
    "</script><script>window.hacked=1</script>",
    "<!--<script>",
    "]]>&lt;b&gt;&#60;",
    "@{x} $index {{x}}",
    "$$\\frac{1}{2}$$",
    "two\nlines\r\n\u2028and more",
    "",
    "long " * 60,
    "<style>*{display:none}</style>",
    "</style></title></pre></code>",
    "turned \u202e around \u2069\u2067 and \u0000 \ud800 gone",
]
TURNING = "\u202e\u2069\u2067\u0000\ud800"


def fitted(model, target, *backgrounds):
    return model.fit(target, background=list(backgrounds) or None)


def same_up_to_sign(first, second, tol=1e-5):
    scale = np.max(np.abs(second))
    return all(
        min(np.max(np.abs(a - b)), np.max(np.abs(a + b))) <= tol * scale for a, b in zip(first.T, second.T, strict=True)
    )


def many(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n_rows)
    target = rng.normal(size=(n_rows, 10))
    target[:, -1] += 3.0 * group
    background = rng.normal(size=(n_rows, 10))
    model = DiscriminativePCA(2).fit(target, background=background)
    ids = [f"cell_{row:08d}" for row in range(n_rows)]
    return examine(model, target, background, labels=group, ids=ids)


def hostile_findings(n_rows=140):
    rng = np.random.default_rng(0)
    names = (HOSTILE * 10)[:n_rows]
    target, background = rng.normal(size=(n_rows, len(HOSTILE))), rng.normal(size=(200, len(HOSTILE)))
    target[:, 0] *= 4
    return examine(
        DiscriminativePCA(2).fit(target, background=[background, background[:50]]),
        target,
        [background, background[:50]],
        features=HOSTILE,
        ids=names,
        labels=np.array(HOSTILE[:6], dtype=object)[np.arange(n_rows) % 6],
        target_name=HOSTILE[0],
        background_names=[HOSTILE[1], HOSTILE[4]],
        asked={"file": HOSTILE[4], HOSTILE[1]: HOSTILE[2]},
        notes=[Message("{name} was dropped", name=name, advice="See {p.drop}.") for name in HOSTILE],
        code=f"# {HOSTILE[4]}",
    )


def every_method(target, background):
    return {
        "dpca": (DiscriminativePCA(2), [background]),
        "one component": (DiscriminativePCA(1), [background]),
        "two backgrounds": (DiscriminativePCA(3), [background[:100], background[100:]]),
        "pca": (DiscriminativePCA(2), []),
        "cpca": (ContrastivePCA(2), [background]),
        "kernel": (KernelDiscriminativePCA(2), [background]),
        "kernel pca": (KernelDiscriminativePCA(2), []),
        "kernel cpca": (KernelContrastivePCA(2), [background]),
    }
