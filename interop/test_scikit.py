"""`trainerd init DATA` and `trainerd run` alone are as good as scikit-learn's linear model and perceptron.

These have their defaults, scaled columns and the same split (`scikit/`).
"""

import csv
import json
import math
import os
import re
import subprocess

import pytest

import scikit

TRAINERD = os.path.abspath(os.path.join(os.environ.get("TRAINERD_BIN_DIR", "bin"), "trainerd"))
SCORES = json.loads((scikit.HERE / "scores.json").read_text())["scores"]
WITHIN = 0.02


def train(tmp_path, *init):
    def trainerd(*words):
        done = subprocess.run([TRAINERD, *words], cwd=tmp_path, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    trainerd("init", *init, "train.csv")
    return trainerd("run", "train.toml", "--set", "data.test_fraction=0", "--set", "data.test_file=test.csv")


@pytest.mark.parametrize("name", scikit.names())
def test_as_good_as_scikit_learn(tmp_path, name):
    train_text, test_text, label = scikit.split(name)
    (tmp_path / "train.csv").write_text(train_text)
    (tmp_path / "test.csv").write_text(test_text)
    said = train(tmp_path, "--label", label)
    ours = float(re.search(r"^test (?:accuracy|R2): (\S+)", said, re.MULTILINE).group(1))
    best = max(SCORES[name].values())
    rows = len(list(csv.reader(test_text.splitlines()))) - 1
    # One row of a small test part is more than that already.
    allowed = WITHIN if name in scikit.NUMBERS else max(WITHIN, 1 / rows)
    assert ours >= best - allowed - 1e-3, f"{name}: {ours}, scikit-learn {SCORES[name]} on {rows} rows"


def test_weights(tmp_path):
    """A weight counts as so many copies of the row do; rare classes that are balanced are found."""
    rows, label = scikit.rows_of("passengers")
    header, rows = rows[0], rows[1:300]
    drop = [header.index("name"), header.index("age")]
    keep = [i for i in range(len(header)) if i not in drop]
    times = [1 + (int(row[1]) == 3) * 2 for row in rows]
    outputs = {}
    for kind in ("weights", "copies"):
        lines = [[header[i] for i in keep] + ["w"]]
        for row, n in zip(rows, times):
            lines += [[row[i] for i in keep] + [str(n)]] if kind == "weights" else [[row[i] for i in keep] + ["1"]] * n
        (tmp_path / f"{kind}.csv").write_text("".join(",".join(line) + "\n" for line in lines))
        config = tmp_path / f"{kind}.toml"
        config.write_text(f'''logdir = "{kind}"
[data]
file = "{kind}.csv"
header = true
label = "{label}"
categories = ["sex"]
weight = "w"
shuffle = false
scale = 10
batch_size = {len(lines) - 1}
[model]
family = "logistic"
l2 = 0.1
learning_rate = 0.5
[train]
steps = 200
''')
        for words in (["run", str(config)], ["predict", kind, f"{kind}.csv", "--out", f"{kind}-out.csv"]):
            done = subprocess.run([TRAINERD, *words], cwd=tmp_path, capture_output=True, text=True, timeout=240)
            assert done.returncode == 0, done.stdout + done.stderr
        found = list(csv.DictReader(open(tmp_path / f"{kind}-out.csv")))
        outputs[kind] = [float(row["probability_1"]) for row in found]
    copies = iter(outputs["copies"])
    for weighted, n in zip(outputs["weights"], times):
        for _ in range(n):
            assert math.isclose(weighted, next(copies), rel_tol=1e-3), "a weight is not what copies are"
