"""
How many components are real?
=============================

The leading component was chosen, among all directions, for its large ratio of variances. So that ratio is above 1
even where target and background come from one and the same source. ``component_test`` knows how far above 1 chance
goes.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA
from standout.datasets import make_factor_model
from standout.selection import component_test

# %%
# First, nothing to be found: two datasets from the same source, 300 rows of 40 columns each. The largest ratio is
# about 3 all the same.

rng = np.random.default_rng(0)
nothing = component_test(rng.normal(size=(300, 40)), rng.normal(size=(300, 40)), n_components=6)
print("ratios:  ", nothing.ratios.round(2))
print("p-values:", nothing.p_values.round(2))
print("real:    ", nothing.n_significant)

# %%
# Then data with three directions of the target's own, of variances 16, 8 and 4 beside noise of variance 1, among
# ten that both datasets share.

data = make_factor_model(300, 300, 40, n_specific=3, shared_ratio=1.0, specific_variance=[16.0, 8.0, 4.0])
something = component_test(data.target, data.backgrounds, n_components=6)
print("ratios:  ", something.ratios.round(2))
print("p-values:", something.p_values.round(4))
print("real:    ", something.n_significant)

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
for ax, test, title in zip(axes, [nothing, something], ["one source for both", "three own directions"], strict=True):
    numbers = np.arange(1, len(test.ratios) + 1)
    real = numbers <= test.n_significant
    ax.bar(numbers, test.ratios, color=np.where(real, "#D55E00", "#BBBBBB"))
    ax.plot(numbers, test.edges, "k_", markersize=26, markeredgewidth=2, label="chance gives up to (1 in 20)")
    ax.axhline(1.0, color="grey", linewidth=0.8)
    ax.set(
        title=f"{title}: {test.n_significant} real",
        xlabel="component",
        yscale="log",
        yticks=[1, 2, 5, 10, 20],
        ylim=(0.8, 40),
    )
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
axes[0].set_ylabel("variance of the target by that of the background")
axes[1].legend(frameon=False)

# %%
# ``n_components="auto"`` keeps what the test finds. By formula the test takes rows to be Gaussian;
# ``test="permutation"`` deals the rows anew among the datasets instead, and asks only that they are independent
# and, but for what is tested, alike in distribution. See the page *Significance*.

dpca = DiscriminativePCA(n_components="auto", test="permutation").fit(data.target, background=data.backgrounds)
print(dpca.n_components_, "components, p-values", dpca.p_values_)
