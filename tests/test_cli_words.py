"""Words on parameters become words on options, and names and values stay as they are."""

import pytest

from standout.cli._as_options import as_options

SAID = {
    "group_column='gpr' is not in 'a.csv'. Is 'grp' meant?": "--group-column 'gpr' is not in 'a.csv'. Is 'grp' meant?",
    "n_components=9 is larger than n_features=4.": "--components 9 is larger than the number of columns, 4.",
    "background_weights are all zero.": "--weights are all zero.",
    "Give one number per background, or None for equal weights.": "Give one number per background, or equal.",
    "Use 'auto', None, or a number from 0 to 1.": "Use 'auto', none, or a number from 0 to 1.",
    "target has '9', but": "--target has '9', but",
    "backgrounds has 'NA', but": "--background-group has 'NA', but",
    "drop names column 'x'. Leave it out of select.": "--drop names column 'x'. Leave it out of --select.",
    "Drop it (drop, --drop; for a scan, name what is in columns).": "Drop it (--drop).",
    "Take it as ids (id_column='', --id-column '').": "Take it as ids (--id-column '').",
    "Drop or select some (--drop, --select).": "Drop or select some (--drop, --select).",
    "Say what it is with format (--format).": "Say what it is with --format.",
    "Say so with format='csv' (--format csv).": "Say so with --format csv.",
    "Use missing='drop-rows' or 'mean' (--missing).": "Use --missing 'drop-rows' or 'mean'.",
    'Use test="permutation" (--test permutation).': "Use --test permutation.",
    "For example kernel_params={'bandwidth': 5.0}.": "For example --bandwidth 5.0.",
    "It is not written by standout.save.": "It is not written by standout fit.",
}


@pytest.mark.parametrize("words", SAID)
def test_parameters_are_said_as_options(words):
    assert as_options(words) == SAID[words]
    assert as_options(SAID[words]) == SAID[words]


def test_names_and_values_are_not_changed():
    names = "'alpha=1', 'drop names', \"it's None\", 'group_column', 'a\\'b (drop, --drop)'"
    assert as_options(f"the target's columns {names}") == f"the target's columns {names}"
