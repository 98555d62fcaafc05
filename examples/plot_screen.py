"""
Which of many treatments stand out?
===================================

Thirty compounds are compared with shared controls. Three of them shift the mean, two of them make cells differ more, and
the others do nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import screen
from standout.screening import plot_screen

rng = np.random.default_rng(0)
labels = np.repeat(
    ["control", *(f"compound {k:02d}" for k in range(30))], [600, *[60] * 30]
)
shared = 2 * rng.normal(size=(3, 25))
X = rng.normal(size=(len(labels), 3)) @ shared + rng.normal(size=(len(labels), 25))
for k in range(3):
    X[labels == f"compound {k:02d}", :4] += 1.5
for k in range(3, 5):
    X[labels == f"compound {k:02d}", 8] *= 3.0

# %%
# One row per compound: shift and spread in units of the controls' variance, a p-value, and a q-value that is corrected
# for the number of compounds.

found = screen(X, labels, control="control")
print(found.table[["rows", "shift", "spread", "q_value", "verdict"]].head(8).round(3))

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plot_screen(found.table, ax=ax, most=12)
