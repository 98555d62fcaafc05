"""Files of ours that were damaged, or written by another version: told, or harmless."""

import json
import re
import warnings

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import standout
from saved_models import CASES, SPARSE, TARGET, assert_same, entries_of, write_entries
from standout import DiscriminativePCA, KernelDiscriminativePCA, make_pipeline

# --- damage ---------------------------------------------------------------------------------------------------------


def loads_or_tells(path):
    """Load a file, which may be refused in one way only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "duplicate|.*was saved with", UserWarning)
        try:
            return standout.load(path)
        except ValueError as error:
            refusal = str(error)
    assert "cannot be loaded: " in refusal
    return None


def test_a_truncated_file_is_told_wherever_it_ends(tmp_path):
    path = tmp_path / "model.skops"
    standout.save(CASES["kernel, sparse landmarks"](), path)
    whole = path.read_bytes()
    for end in np.linspace(0, len(whole) - 1, 50).astype(int):
        path.write_bytes(whole[:end])
        assert loads_or_tells(path) is None


def test_damage_anywhere_is_told_or_harmless(tmp_path, rng):
    path = tmp_path / "model.skops"
    model = CASES["kernel, exact landmarks"]()
    standout.save(model, path)
    whole = bytearray(path.read_bytes())
    for place in rng.integers(len(whole), size=300):
        damaged = whole.copy()
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        loaded = loads_or_tells(path)
        if loaded is not None:
            # A date, say: what matters has a checksum.
            assert_same(model, loaded)


def places_in(thing, path=()):
    if isinstance(thing, dict | list):
        for key in thing if isinstance(thing, dict) else range(len(thing)):
            yield (*path, key)
            yield from places_in(thing[key], (*path, key))


@pytest.mark.parametrize("junk", [None, "", "junk", 1, [], {}, {"__loader__": "JsonNode"}, "absent"], ids=repr)
def test_a_schema_with_junk_anywhere_is_told_or_harmless(junk, tmp_path):
    path = tmp_path / "model.skops"
    standout.save(make_pipeline(StandardScaler(), KernelDiscriminativePCA(approximation=SPARSE[:3])), path)
    entries = entries_of(path)
    schema = entries["schema.json"].decode()
    for place in places_in(json.loads(schema)):
        changed = json.loads(schema)
        *way, last = place
        inner = changed
        for key in way:
            inner = inner[key]
        if junk == "absent":
            del inner[last]
        else:
            inner[last] = junk
        loads_or_tells(write_entries(path, entries | {"schema.json": json.dumps(changed)}))


# --- versions -------------------------------------------------------------------------------------------------------


def of_version(folder, **versions):
    path = folder / "model.skops"
    standout.save(CASES["pipeline"](), path)
    entries = entries_of(path)
    header = json.loads(entries["standout.json"])
    changed = header | {name.replace("_", "-"): version for name, version in versions.items()}
    return write_entries(path, entries | {"standout.json": json.dumps(changed)})


def test_a_file_tells_the_versions_that_wrote_it(tmp_path):
    standout.save(DiscriminativePCA(), tmp_path / "model.skops")
    versions = json.loads(entries_of(tmp_path / "model.skops")["standout.json"])
    assert set(versions) == {"standout", "scikit-learn", "numpy", "scipy", "skops"}
    assert versions["standout"] == standout.__version__


def test_another_minor_version_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.setattr(standout, "__version__", "1.4.2")
    for saved in ("1.5.0", "1.3.9", "1.10.0.dev0+local"):
        path = of_version(tmp_path, standout=saved)
        with pytest.warns(
            UserWarning, match=rf"was saved with standout {re.escape(saved)} \(here 1.4.2\), and what"
        ) as told:
            assert standout.load(path).transform(TARGET).shape == (60, 2)
        assert told[0].filename == __file__
    standout.load(of_version(tmp_path, standout="1.4.0rc1"))


def test_another_major_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(standout, "__version__", "1.4.2")
    for saved in ("0.4.2", "2.4.2", "10.4"):
        path = of_version(tmp_path, standout=saved)
        with pytest.raises(
            ValueError, match=rf"it was saved by standout {re.escape(saved)}, and this is 1.4.2. Install"
        ):
            standout.load(path)


def test_another_scikit_learn_is_warned_of(tmp_path):
    path = of_version(tmp_path, scikit_learn="1.0.2")
    with pytest.warns(
        UserWarning, match=r"was saved with scikit-learn 1.0.2 \(here .*\), .*Compare its scores with known"
    ):
        standout.load(path)
    path = of_version(tmp_path, scikit_learn="1.0.2", standout="0.99")
    with pytest.warns(
        UserWarning, match=r"was saved with standout 0.99 .here .*. and scikit-learn 1.0.2 .here .*., and"
    ):
        standout.load(path)


@pytest.mark.parametrize("version", [None, 1, "", "new", "1", "1." + "9" * 100, ["0.1"], "0.1\n"])
def test_a_version_that_is_none_is_told(version, tmp_path):
    with pytest.raises(ValueError, match="it was not written by standout.save"):
        standout.load(of_version(tmp_path, standout=version))
