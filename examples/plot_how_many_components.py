"""
How many components are real?
=============================

The leading component is the direction with the largest ratio of variances. Its ratio is therefore above 1 even if
target and background come from the same distribution. ``component_test`` tells how large it gets by chance.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA
from standout.datasets import make_factor_model
from standout.selection import component_test

# %%
# First, data without any component: two datasets from the same distribution, with 300 rows and 40 columns each. The
# largest ratio is still about 3.

rng = np.random.default_rng(0)
nothing = component_test(
    rng.normal(size=(300, 40)), rng.normal(size=(300, 40)), n_components=6
)
print("ratios:  ", nothing.ratios.round(2))
print("p-values:", nothing.p_values.round(2))
print("real:    ", nothing.n_significant)

# %%
# Then data with three directions in which only the target varies, with variances 16, 8 and 4 and noise of variance 1.
# Ten other directions are shared by both datasets.

data = make_factor_model(
    300, 300, 40, n_specific=3, shared_ratio=1.0, specific_variance=[16.0, 8.0, 4.0]
)
something = component_test(data.target, data.backgrounds, n_components=6)
print("ratios:  ", something.ratios.round(2))
print("p-values:", something.p_values.round(4))
print("real:    ", something.n_significant)

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
for ax, test, title in zip(
    axes, [nothing, something], ["no real component", "three real components"], strict=True
):
    numbers = np.arange(1, len(test.ratios) + 1)
    real = numbers <= test.n_significant
    ax.bar(numbers, test.ratios, color=np.where(real, "#D55E00", "#BBBBBB"))
    ax.plot(
        numbers,
        test.edges,
        "k_",
        markersize=26,
        markeredgewidth=2,
        label="95 % quantile under chance",
    )
    ax.axhline(1.0, color="grey", linewidth=0.8)
    ax.set(
        title=f"{title}: {test.n_significant} found",
        xlabel="component",
        yscale="log",
        yticks=[1, 2, 5, 10, 20],
        ylim=(0.8, 60),
    )
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
axes[0].set_ylabel("variance of target / background")
axes[1].legend(frameon=False)

# %%
# ``n_components="auto"`` keeps the significant components. The analytic test assumes Gaussian rows.
# ``test="permutation"`` permutes the rows among the datasets instead. It assumes that rows are independent, and under
# the null hypothesis that all datasets have the same distribution. See the page *Significance*.

dpca = DiscriminativePCA(n_components="auto", test="permutation").fit(
    data.target, background=data.backgrounds
)
print(dpca.n_components_, "components, p-values", dpca.p_values_)
