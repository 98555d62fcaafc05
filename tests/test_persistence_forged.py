"""Files that are not ours, and forged ones: told in one line, and nothing in them is ever run."""

import io
import json
import os
import pickle
import re
import sys
import zipfile
from contextlib import suppress

import joblib
import numpy as np
import pytest
import skops.io
from sklearn.decomposition import PCA

import standout
from saved_models import TARGET, entries_of, write_entries
from standout import DiscriminativePCA, make_pipeline

# --- files that are not ours ----------------------------------------------------------------------------------------


class Touch:
    """What runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file .*absent.skops"):
        standout.load(tmp_path / "absent.skops")


def npz():
    buffer = io.BytesIO()
    np.savez(buffer, a=TARGET)
    return buffer.getvalue()


NOT_OURS = {
    "nothing": b"",
    "random bytes": np.random.default_rng(0).bytes(5_000),
    "text": b"a,b\n1,2\n",
    "an archive of arrays": npz(),
    "the start of an archive": b"PK\x03\x04" + bytes(100),
    "the end of an archive": b"PK\x05\x06" + bytes(18),
}


@pytest.mark.parametrize("case", NOT_OURS)
def test_a_file_of_another_kind_is_told(case, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(NOT_OURS[case])
    with pytest.raises(
        ValueError, match=r"model.skops' cannot be loaded: it is not a file written by standout.save, or it is"
    ):
        standout.load(path)


def test_a_pickle_is_not_read(tmp_path):
    path, ran = tmp_path / "model.skops", tmp_path / "ran"
    for write in (lambda: path.write_bytes(pickle.dumps(Touch(ran))), lambda: joblib.dump(Touch(ran), path)):
        write()
        with pytest.raises(ValueError, match="cannot be loaded: .* Pickles and other formats are not read"):
            standout.load(path)
        assert not ran.exists()
    pickle.loads(path.read_bytes())
    assert ran.exists(), "the pickle does nothing: the test shows nothing"


@pytest.mark.parametrize("thing", [PCA(), PCA(2).fit(TARGET), [1, 2]])
def test_a_file_of_skops_is_not_one_of_ours(thing, tmp_path):
    skops.io.dump(thing, tmp_path / "model.skops")
    with pytest.raises(ValueError, match=r"cannot be loaded: it was not written by standout.save\. Get the file again"):
        standout.load(tmp_path / "model.skops")


# --- forged files ---------------------------------------------------------------------------------------------------


def forged(folder, change, model=None, **files):
    """A file of `save` whose schema a function has changed in place, with further entries."""
    path = folder / "model.skops"
    standout.save(DiscriminativePCA() if model is None else model, path)
    entries = entries_of(path)
    schema = json.loads(entries["schema.json"])
    changed = change(schema)
    entries["schema.json"] = json.dumps(schema if changed is None else changed)
    return write_entries(path, entries | files)


def with_label(node):
    """Put a node in place of the parameter `target_label`."""

    def change(schema):
        schema["content"]["content"]["target_label"] = node

    return change


def node(loader, name, **rest):
    module, _, kind = name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": kind, **rest}


def text(words):
    return {**node("JsonNode", "builtins.str"), "content": json.dumps(words), "is_json": True}


def listing(*nodes, kind="builtins.list"):
    return node("ListNode", kind, content=list(nodes))


def pack(*nodes):
    return node("TupleNode", "builtins.tuple", content=list(nodes))


def mapping(keys, kind="builtins.dict", **values):
    return node("DictNode", kind, key_types=listing(*keys), content=values)


def bound(function):
    parts = {"func": function, "args": pack(), "kwds": mapping([]), "namespace": text(None)}
    return node("PartialNode", "functools.partial", content=parts)


def command(ran):
    return f"touch {ran}"


# What runs a command as soon as skops makes it.
RUNS = {
    "a constructor": lambda ran: node("ConstructorFromReduceNode", "os.system", content=pack(text(command(ran)))),
    "the type of a list": lambda ran: listing(text("touch"), text(str(ran)), kind="subprocess.check_call"),
    "the type of a set": lambda ran: node("SetNode", "subprocess.check_call", content=[text("touch"), text(str(ran))]),
    "the type of a key": lambda ran: node(
        "DictNode",
        "builtins.dict",
        key_types=listing(node("FunctionNode", "os.system")),
        content={command(ran): text("")},
    ),
    "the type of a key as type": lambda ran: node(
        "DictNode", "builtins.dict", key_types=listing(node("TypeNode", "os.system")), content={command(ran): text("")}
    ),
    "a partial function as the type of a key": lambda ran: node(
        "DictNode",
        "builtins.dict",
        key_types=listing(bound(node("FunctionNode", "os.system"))),
        content={command(ran): text("")},
    ),
}

# What brings code into a model, to be run later, or is known from attacks on skops of the past.
BRINGS = {
    "a function": (lambda ran: node("FunctionNode", "os.system"), "os.system"),
    "a function of an old protocol": (
        lambda ran: node("FunctionNode", "numpy.add", content={"module_path": "os", "function": "system"}),
        "os.system",
    ),
    "a partial function": (
        lambda ran: bound(node("FunctionNode", "os.system")),
        "functools.partial",
    ),
    "a method": (
        lambda ran: node("MethodNode", "builtins.list", content={"func": "__class__", "obj": listing()}),
        "builtins.list.__class__",
    ),
    "a caller of methods": (
        lambda ran: node("OperatorFuncNode", "operator.methodcaller", attrs=pack(text("system"), text(command(ran)))),
        "operator.methodcaller",
    ),
    "any function of operator": (
        lambda ran: node("OperatorFuncNode", "operator.call", attrs=pack(node("FunctionNode", "os.getcwd"))),
        "operator.call",
    ),
    "a generator of another name": (
        lambda ran: node(
            "RandomGeneratorNode",
            "numpy.random._generator.Generator",
            content={
                "bit_generator": mapping([node("TypeNode", "builtins.str")], bit_generator=text("seed")),
                "seed_seq": mapping([]),
            },
        ),
        "numpy.random.seed",
    ),
    "a tree": (
        lambda ran: node("TreeNode", "sklearn.tree._tree.Tree", content=mapping([]), __reduce__={"args": pack()}),
        "sklearn.tree._tree.Tree",
    ),
    "a loss of another type": (
        lambda ran: node("LossNode", "os.system", content=mapping([]), __reduce__={"args": pack(text(command(ran)))}),
        "os.system",
    ),
    "an unknown object": (lambda ran: node("ObjectNode", "builtins.object"), "builtins.object"),
}


@pytest.mark.parametrize("case", RUNS)
def test_no_command_in_a_file_is_run(case, tmp_path):
    ran = tmp_path / "ran"
    path = forged(tmp_path, with_label(RUNS[case](ran)))
    with pytest.raises(
        ValueError, match="cannot be loaded: it has types? .*, which standout.load does not trust; nothing of"
    ):
        standout.load(path)
    assert not ran.exists()
    untrusted = skops.io.get_untrusted_types(file=path)
    # What happens to those who trust the file: without this, the test would show nothing.
    with suppress(Exception):
        skops.io.load(path, trusted=untrusted)
    assert ran.exists()


@pytest.mark.parametrize("case", [*RUNS, *BRINGS])
def test_a_file_of_one_untrusted_object_alone_is_refused_by_name(case, tmp_path):
    make = RUNS.get(case) or BRINGS[case][0]
    ran = tmp_path / "ran"
    schema = {**make(ran), "protocol": 0 if "old" in case else 2, "_skops_version": "0.16.0"}
    path = write_entries(tmp_path / "model.skops", {"schema.json": json.dumps(schema)})
    with pytest.raises(ValueError, match="which standout.load does not trust"):
        standout.load(path)
    assert not ran.exists()


@pytest.mark.parametrize("case", BRINGS)
def test_types_that_are_not_trusted_are_named(case, tmp_path):
    make, name = BRINGS[case]

    def change(schema):
        with_label(make(tmp_path / "ran"))(schema)
        schema["protocol"] = 0 if "old" in case else schema["protocol"]

    path = forged(tmp_path, change)
    with pytest.raises(ValueError, match=re.escape(repr(name))) as told:
        standout.load(path)
    assert "It says that it is of standout" in str(told.value)
    assert not (tmp_path / "ran").exists()


GENERATOR = node(
    "RandomGeneratorNode",
    "numpy.random._generator.Generator",
    content={
        "bit_generator": mapping([node("TypeNode", "builtins.str")], bit_generator=text("PCG64")),
        "seed_seq": mapping([]),
    },
)
DEFAULTS = node(
    "DefaultDictNode", "collections.defaultdict", content={"main": mapping([]), "default_factory": text(None)}
)


@pytest.mark.parametrize("thing", [GENERATOR, DEFAULTS], ids=["generator", "defaultdict"])
def test_objects_of_skops_that_no_model_needs_are_refused_though_skops_trusts_them(thing, tmp_path):
    path = forged(tmp_path, with_label(thing))
    with pytest.raises(
        ValueError, match=rf"it has object '{thing['__loader__']}' of skops, which standout.save does not"
    ):
        standout.load(path)


@pytest.mark.parametrize(
    "loader", ["ObjectNode", "TypeNode", "FunctionNode", "ListNode", "NdArrayNode", "SparseMatrixNode"]
)
def test_no_module_named_in_a_file_is_imported(loader, tmp_path, monkeypatch):
    ran = tmp_path / "ran"
    (tmp_path / "evil_module.py").write_text(f"open({str(ran)!r}, 'w').close()\nclass Evil(list): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    npy = io.BytesIO()
    np.save(npy, np.zeros(3))
    rest = {
        "ListNode": {"content": []},
        "NdArrayNode": {"type": "numpy", "file": "evil"},
        "SparseMatrixNode": {"type": "scipy", "file": "evil"},
    }
    evil = node(loader, "evil_module.Evil", **rest.get(loader, {}))
    path = forged(tmp_path, with_label(evil), evil=npy.getvalue())
    with pytest.raises(ValueError, match=r"type 'evil_module\.Evil'"):
        standout.load(path)
    assert not ran.exists()
    assert "evil_module" not in sys.modules


@pytest.mark.parametrize("loader", ["NdArrayNode", "SparseMatrixNode"])
def test_a_pickle_in_an_array_is_not_read(loader, tmp_path):
    ran = tmp_path / "ran"
    buffer = io.BytesIO()
    evil = np.array([Touch(ran)], dtype=object)
    if loader == "NdArrayNode":
        np.save(buffer, evil, allow_pickle=True)
        array = node(loader, "numpy.ndarray", type="numpy", file="evil")
    else:
        np.savez(buffer, format=np.array("csr"), shape=[1, 1], data=evil, indices=[0], indptr=[0, 1])
        array = node(loader, "scipy.sparse._csr.csr_matrix", type="scipy", file="evil")
    path = forged(tmp_path, with_label(array), evil=buffer.getvalue())
    with pytest.raises(ValueError, match="cannot be loaded: .*allow_pickle"):
        standout.load(path)
    assert not ran.exists()


def test_no_folder_of_pickles_is_named_by_a_file(tmp_path):
    # Attributes as a plain text, which no look at the types would tell from any other.
    held = {**vars(make_pipeline(DiscriminativePCA())), "memory": "//elsewhere/share"}
    held["steps"] = []

    def change(schema):
        schema["content"] = text(held)

    path = forged(tmp_path, change, make_pipeline(DiscriminativePCA()))
    with pytest.raises(ValueError, match="cannot be loaded: a pipeline keeps results in '//elsewhere/share'"):
        standout.load(path)


@pytest.mark.parametrize("thing", [listing(), node("ObjectNode", "sklearn.decomposition._pca.PCA"), text("model")])
def test_a_file_of_ours_with_another_thing_in_it_is_told(thing, tmp_path):
    path = forged(tmp_path, lambda schema: {**thing, "protocol": schema["protocol"]})
    with pytest.raises(ValueError, match="it holds an object of type (list|PCA|str), not of DiscriminativePCA, "):
        standout.load(path)


def test_compressed_files_are_refused_unread(tmp_path):
    standout.save(DiscriminativePCA(), tmp_path / "model.skops")
    entries = entries_of(tmp_path / "model.skops") | {"bomb": bytes(10**7)}
    path = write_entries(tmp_path / "model.skops", entries, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**5
    with pytest.raises(ValueError, match="it has compressed parts .*, and standout.save compresses none"):
        standout.load(path)


def sparse_bomb(n_bytes):
    """A compressed sparse array of zeros, as skops keeps them."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("data.npy", "w") as entry:
        for _ in range(n_bytes // 10**6):
            entry.write(bytes(10**6))
    return buffer.getvalue()


def test_sparse_arrays_that_would_fill_the_memory_are_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr("standout.persistence._MOST_UNPACKED", 10**7)
    array = node("SparseMatrixNode", "scipy.sparse._csr.csr_matrix", type="scipy", file="bomb")
    path = forged(tmp_path, with_label(array), bomb=sparse_bomb(5 * 10**7))
    with pytest.raises(ValueError, match="bytes hold arrays of 50000000 bytes, and 10000000 are the limit"):
        standout.load(path)


@pytest.mark.parametrize("numbered", [True, False])
def test_an_array_named_many_times_is_counted_as_often(numbered, tmp_path, monkeypatch):
    monkeypatch.setattr("standout.persistence._MOST_UNPACKED", 10**7)
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(10_000))
    arrays = [node("NdArrayNode", "numpy.ndarray", type="numpy", file="array") for _ in range(1_000)]
    if numbered:
        arrays = [{**array, "__id__": number} for number, array in enumerate(arrays, start=1)]
    path = forged(tmp_path, with_label(listing(*arrays)), array=buffer.getvalue())
    with pytest.raises(ValueError, match="bytes hold arrays of 80128000 bytes"):
        standout.load(path)


def test_an_array_that_claims_to_be_huge_is_told(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % 10**15
    npy = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    array = node("NdArrayNode", "numpy.ndarray", type="numpy", file="huge")
    with pytest.raises(ValueError, match="or it is damaged"):
        standout.load(forged(tmp_path, with_label(array), huge=npy))


def test_endless_nesting_is_told(tmp_path):
    standout.save(DiscriminativePCA(), tmp_path / "model.skops")
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    entries = entries_of(tmp_path / "model.skops") | {"schema.json": deep}
    with pytest.raises(ValueError, match="or it is damaged .RecursionError"):
        standout.load(write_entries(tmp_path / "model.skops", entries))
