"""Try an installed package: the version, a fit, types, and the sentence that names a missing extra."""

from pathlib import Path

import numpy as np

import standout

assert "site-packages" in standout.__file__, standout.__file__
assert (Path(standout.__file__).parent / "py.typed").is_file()
rng = np.random.default_rng(0)
target, background = rng.normal(size=(2, 100, 4))
target[:, 2] *= 3
model = standout.DiscriminativePCA(1).fit(target, background=background)
assert int(np.argmax(np.abs(model.components_))) == 2
missing = ""
try:
    standout.save(model, "model.skops")
except ImportError as error:
    missing = str(error)
assert "pip install skops" in missing, missing
print("standout", standout.__version__, "works")
