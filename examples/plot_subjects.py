"""
Why subjects matter
===================

Cells of one donor are similar. If they are treated as independent, a test finds differences between any two groups of
donors.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA, permutation_test

N_DONORS, N_CELLS, N_GENES = 8, 20, 10
scale = np.geomspace(5, 1, N_GENES)


def cells(rng):
    """Return cells of donors that differ from each other; nothing distinguishes one group of donors from another."""
    donors = np.repeat(rng.normal(size=(N_DONORS, N_GENES)) * scale, N_CELLS, axis=0)
    return donors + rng.normal(size=(N_DONORS * N_CELLS, N_GENES)) * scale


# %%
# Twenty experiments without any effect. A correct test has a p-value below 0.05 in one of twenty.

donors = np.repeat(np.arange(N_DONORS), N_CELLS)
by_subjects = {"groups": donors, "background_groups": N_DONORS + donors}
p_values = {"rows": [], "donors": []}
for seed in range(20):
    rng = np.random.default_rng(seed)
    X, Y = cells(rng), cells(rng)
    for name, groups in {"rows": {}, "donors": by_subjects}.items():
        model = DiscriminativePCA(1, shrinkage=0.1, cv=None).fit(X, background=Y, **groups)
        test = permutation_test(model, X, background=Y, n_draws=99, **groups)
        p_values[name].append(test.p_values[0])

fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
for height, (name, found) in enumerate(p_values.items()):
    ax.plot(found, np.full(20, height) + np.linspace(-0.2, 0.2, 20), "o", alpha=0.7)
    print(f"{name}: {np.mean(np.array(found) <= 0.05):.0%} of 20 p-values are below 0.05")
ax.axvline(0.05, color="black", linestyle=":")
ax.set(
    yticks=[0, 1],
    yticklabels=[f"{name} are dealt" for name in p_values],
    ylim=(-0.6, 1.6),
    xlabel="p-value, although nothing differs",
)
