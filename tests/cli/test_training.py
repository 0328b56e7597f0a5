"""`idiograph train` takes ten settings as options and every other by `--set`; what is wrong is said before any work."""

import pytest

from idiograph.cli.training import train_settings

WRONG = {
    "hed=linear": "[train] has no key 'hed' (did you mean 'head'?); all keys: idiograph recipe",
    "head": "'head' is no setting; write key=value, such as 'seed=8'",
    "dim=": "'dim=' is no setting; write key=value, such as 'seed=8'",
    "=16": "'=16' is no setting; write key=value, such as 'seed=8'",
    "head=linnear": "[train] head: input should be 'none', 'linear' or 'mlp', but got 'linnear'",
    "lr=-1": "[train] lr: input should be greater than 0, but got -1",
    "dim=1.5": "[train] dim: input should be a valid integer, got a number with a fractional part, but got 1.5",
    "center=2": "[train] center: input should be a valid boolean, unable to interpret input, but got 2",
    "weights=2,1": "[train] weights: input should be a valid tuple, but got '2,1'",
    "weights=[2": "'[2' is not TOML: ",
}


@pytest.mark.parametrize("given", WRONG)
def test_a_wrong_setting_is_named_in_one_line(idiograph, tmp_path, given):
    status, out, err = idiograph("train", tmp_path, "-o", tmp_path / "model", "--set", given)
    assert (status, out) == (1, "")
    assert WRONG[given] in err
    assert err.count("\n") == 1
    assert not (tmp_path / "model").exists()


def test_a_setting_that_is_given_twice_is_refused(idiograph, tmp_path):
    status, _, err = idiograph("train", tmp_path, "-o", tmp_path / "m", "--set", "seed=1", "--set", "seed=2")
    assert status == 1
    assert "'seed' is set twice, to 1 and to '2'" in err
    status, _, err = idiograph("train", tmp_path, "-o", tmp_path / "m", "--seed", 1, "--set", "seed=1")
    assert status == 1
    assert "'seed' is set twice, by --seed and by --set; leave one out" in err


def test_options_and_single_settings_are_put_on_a_file(tmp_path):
    (tmp_path / "some.toml").write_text('[train]\nhead = "mlp"\nseed = 3\nbatch = 8\n')
    more = ["head=linear", "dim=16", "weights=[2, 1]"]
    chosen = train_settings({"lr": 0.01, "batch": None}, more, "sound", tmp_path / "some.toml")
    assert (chosen.head, chosen.dim, chosen.weights) == ("linear", 16, (2.0, 1.0))
    assert (chosen.lr, chosen.batch, chosen.seed) == (0.01, 8, 3)


def test_help_says_where_all_settings_are(idiograph):
    status, out, _ = idiograph("train", "--help")
    assert status == 0
    assert "idiograph recipe" in out
    assert "--set" in out
    assert "--head" not in out
