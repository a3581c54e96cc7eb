"""What goes wrong is said clearly: what, where, what to do. No crash, no success, and no older file is lost."""

import gzip
import pathlib
import re
import shutil
import signal

import pytest
from harness import checkpoints
from harness.commands import DIGITS_CONFIG, assert_no_crash, assert_success
from harness.logdirs import contents, current_step

# The exit codes that trainerd documents.
DATA, IO, IN_USE, CONFIG = 65, 74, 75, 78

STEPS = 300
JOB = {
    "train__steps": STEPS,
    "supervisor__save_model_steps": 100,
    "supervisor__save_summaries_secs": 0,
    "supervisor__save_summaries_steps": 50,
}
LONGER = {**JOB, "train__steps": 2 * STEPS}


@pytest.fixture(scope="module")
def trained(commands, tmp_path_factory):
    """A finished run, which tests copy before they damage it."""
    logdir = tmp_path_factory.mktemp("trained") / "logdir"
    assert_success(commands.train(logdir, **JOB))
    return logdir


@pytest.fixture(scope="module")
def undamaged(commands, trained, tmp_path_factory):
    """The end of LONGER when nothing is damaged: the prefix of its last checkpoint."""
    logdir = tmp_path_factory.mktemp("undamaged") / "logdir"
    assert_success(commands.train(logdir, **LONGER))
    return checkpoints.latest(logdir)


@pytest.fixture
def logdir(tmp_path):
    return tmp_path / "logdir"


@pytest.fixture
def copy(trained, logdir):
    shutil.copytree(trained, logdir)
    return logdir


@pytest.fixture
def job_file(tmp_path):
    """Makes a copy of the example's config with one text replaced, next to the example's data."""

    def make(old, new):
        text = DIGITS_CONFIG.read_text(encoding="utf-8")
        assert old in text, f"the example's config has no {old!r}"
        shutil.copy(DIGITS_CONFIG.parent / "digits.csv.gz", tmp_path)
        path = tmp_path / "job.toml"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return path

    return make


# --- config -----------------------------------------------------------------------------------------------------------


def test_unknown_key_is_found_with_line_and_nearest_key(commands, job_file, logdir):
    path = job_file("learning_rate", "learnin_rate")
    line = 1 + path.read_text(encoding="utf-8").split("learnin_rate")[0].count("\n")
    result = commands.train(logdir, config=path)
    assert_refused(result, CONFIG, f"{path}:{line}", "learnin_rate", "model.learning_rate")
    assert not logdir.exists(), str(result)


def test_unknown_key_in_a_setting(commands, logdir):
    result = commands.train(logdir, train__stepz=5)
    assert_refused(result, CONFIG, "--set", "train.stepz", "train.steps")


@pytest.mark.parametrize(
    "setting, words",
    [
        ({"train__steps": '"many"'}, ["train.steps", "integer"]),
        ({"train__steps": -1}, ["train.steps", "-1"]),
        ({"model__family": "mpl"}, ["model.family", "mlp"]),
        ({"supervisor__save_model_secs": -5}, ["supervisor.save_model_secs", "-5"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_value_is_found(commands, logdir, setting, words):
    assert_refused(commands.train(logdir, **setting), CONFIG, *words)


def test_config_that_is_not_toml(commands, tmp_path, logdir):
    path = tmp_path / "job.toml"
    path.write_text("[data\nfile = 1\n", encoding="utf-8")
    assert_refused(commands.train(logdir, config=path), CONFIG, f"{path}:")


def test_missing_config(commands, tmp_path, logdir):
    assert_refused(commands.train(logdir, config=tmp_path / "nowhere.toml"), CONFIG, "nowhere.toml")


def test_check_finds_what_run_finds(commands, job_file):
    path = job_file("learning_rate", "learnin_rate")
    assert_refused(commands.run("trainerd", "check", path), CONFIG, f"{path}:", "model.learning_rate")


def test_check_accepts_the_example(commands):
    assert_success(commands.run("trainerd", "check", str(DIGITS_CONFIG)))


# --- data -------------------------------------------------------------------------------------------------------------


def test_missing_data_file(commands, tmp_path, logdir):
    assert_refused(commands.train(logdir, data__file=tmp_path / "nowhere.csv"), DATA, "nowhere.csv")


@pytest.mark.parametrize("label", [65, -66])
def test_label_column_that_is_not_there(commands, logdir, label):
    assert_refused(commands.train(logdir, data__label=label), DATA, "digits.csv.gz", "65")


def test_label_name_that_is_not_there(commands, tmp_path, logdir):
    path = write_rows(tmp_path / "named.csv", ["a,b,digit", "1,2,0", "3,4,1"])
    result = commands.train(logdir, data__file=path, data__header="true", data__label="didgit")
    assert_refused(result, DATA, str(path), "didgit", "digit")


@pytest.mark.parametrize("value", ["NaN", "nan", "Inf", "seven", ""])
def test_value_that_is_no_number(commands, tmp_path, logdir, value):
    path = write_rows(tmp_path / "bad.csv", ["1,2,0", f"3,{value},1", "5,6,0"])
    assert_refused(commands.train(logdir, data__file=path), DATA, f"{path}:2", "column 2")


def test_row_with_too_few_columns(commands, tmp_path, logdir):
    path = write_rows(tmp_path / "short.csv", ["1,2,0", "3,1", "5,6,0"])
    assert_refused(commands.train(logdir, data__file=path), DATA, f"{path}:2")


def test_gzip_file_that_is_cut_off(commands, tmp_path, logdir):
    whole = (DIGITS_CONFIG.parent / "digits.csv.gz").read_bytes()
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    assert_refused(commands.train(logdir, data__file=path), DATA, str(path))


def test_data_may_be_plain_whatever_the_name_says(commands, tmp_path, logdir):
    path = tmp_path / "plain.csv.gz"
    path.write_bytes(gzip.decompress((DIGITS_CONFIG.parent / "digits.csv.gz").read_bytes()))
    assert_success(commands.train(logdir, **JOB, data__file=path))


# --- logdir -----------------------------------------------------------------------------------------------------------


def test_logdir_that_cannot_be_made(commands, tmp_path):
    """Below a file: not even root can write there."""
    (tmp_path / "file").write_text("")
    assert_refused(commands.train(tmp_path / "file" / "logdir", **JOB), IO, str(tmp_path / "file"))


def test_logdir_that_is_a_file(commands, tmp_path):
    (tmp_path / "file").write_text("kept")
    assert_refused(commands.train(tmp_path / "file", **JOB), IO, str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "kept"


def test_logdir_in_use_names_the_holder(commands, logdir):
    first = commands.start_training(logdir, **{**JOB, "train__steps": 50_000_000})
    try:
        first.wait_until(lambda: current_step(logdir) > 0, "checkpoint")
        second = commands.train(logdir, **JOB)
        assert_refused(second, IN_USE, str(logdir), str(first.pid))
        assert first.running
    finally:
        first.signal(signal.SIGTERM)
    assert_success(first.wait(60))


# --- checkpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".data-00000-of-00001", ".index"])
def test_flipped_byte_in_the_newest_checkpoint(commands, copy, undamaged, suffix):
    """The one before it is used, and the log says so; the end is the same as if nothing had happened."""
    newest = current_step(copy)
    flip_middle_byte(copy / f"model.ckpt-{newest}{suffix}")
    result = assert_success(commands.train(copy, **LONGER))
    assert f"model.ckpt-{newest}" in result.text, str(result)
    assert re.search(rf"\brestored\b.*\bstep={STEPS - 100}\b", result.text), str(result)
    assert checkpoints.same_bits(undamaged, checkpoints.latest(copy)) == []


def test_all_checkpoints_damaged(commands, copy):
    for index in copy.glob("*.index"):
        flip_middle_byte(index.with_suffix(".data-00000-of-00001"))
    before = contents(copy)
    result = assert_refused(commands.train(copy, **LONGER), IO, *(f"model.ckpt-{s}" for s in (100, 200, 300)))
    assert_kept(before, copy, result)


def test_state_names_a_missing_checkpoint(commands, copy, undamaged):
    """The older ones are still there: the newest sound one is used, and the log says so."""
    newest = current_step(copy)
    for path in copy.glob(f"model.ckpt-{newest}.*"):
        path.unlink()
    result = assert_success(commands.train(copy, **LONGER))
    assert f"model.ckpt-{newest}" in result.text, str(result)
    assert checkpoints.same_bits(undamaged, checkpoints.latest(copy)) == []


def test_state_names_nothing_that_exists(commands, copy):
    for path in copy.glob("model.ckpt-*"):
        path.unlink()
    before = contents(copy)
    result = assert_refused(commands.train(copy, **LONGER), IO, "model.ckpt-300")
    assert_kept(before, copy, result)


def test_checkpoint_of_another_model(commands, copy):
    """The key that differs is named; without the graph next to it, the names that are missing and the shapes."""
    before = contents(copy)
    result = commands.train(copy, **LONGER, model__hidden="[64, 32]")
    assert_refused(result, CONFIG, "model.hidden", "[128]", "[64,32]")
    assert_kept(before, copy, result)
    for graph in copy.glob("*.meta"):
        graph.unlink()
    before = contents(copy)
    result = commands.train(copy, **LONGER, model__hidden="[64, 32]")
    assert_refused(result, CONFIG, "hidden_1/kernel", "hidden_2/bias", "logits/kernel", "[128,10]", "[32,10]")
    assert_kept(before, copy, result)


def assert_refused(result, code, *words):
    """The command failed with the exit code, without a crash, and its message has all the words."""
    assert result.code == code, f"exit code {code} expected:\n{result}"
    assert_no_crash(result)
    missing = [word for word in words if str(word) not in result.err]
    assert not missing, f"stderr does not say {missing}:\n{result}"
    return result


def assert_kept(before, logdir, result):
    after = contents(logdir)
    assert {name: after.get(name) for name in before} == before, f"files were changed or lost:\n{result}"


def flip_middle_byte(path: pathlib.Path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def write_rows(path, rows):
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path
