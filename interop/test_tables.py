"""Tables as people have them: `trainerd init` and `trainerd run` alone are as good as least squares or a linear classifier.

Both have the same split. The tables are made here, in the shapes of well-known ones.
"""

import os
import re
import subprocess

import numpy as np
import pytest

TRAINERD = os.path.join(os.environ.get("TRAINERD_BIN_DIR", "bin"), "trainerd")


def penguins(rng):
    """Species by measures: semicolons, decimal commas, missing values, a word column, an index without a name."""
    k = rng.integers(0, 3, 330)
    bill = np.array([38.8, 48.8, 47.5])[k] + rng.normal(0, 2.8, k.size)
    depth = np.array([18.3, 18.4, 15.0])[k] + rng.normal(0, 1.1, k.size)
    names, islands = ["Adelie", "Chinstrap", "Gentoo"], ["Torgersen", "Dream", "Biscoe"]
    rows = [["", "species", "island", "bill", "depth"]]
    for i, kind in enumerate(k):
        place = islands[kind] if rng.uniform() < 0.8 else "Dream"
        text = ["NA" if rng.uniform() < 0.02 else f"{v:.1f}".replace(".", ",") for v in (bill[i], depth[i])]
        rows.append([str(i), names[kind], place, *text])
    features = np.column_stack([np.ones(k.size), bill, depth])
    return ";", rows, "species", features, np.array(names)[k]


def cars(rng):
    """Consumption by weight, year and origin: tabs, dates, names of cars, an empty label here and there."""
    n = 400
    weight, month, origin = rng.uniform(1600, 5000, n), rng.integers(0, 144, n), rng.integers(0, 3, n)
    miles = 46 - 0.0077 * weight + 0.06 * month + np.array([0, 2, 3])[origin] + rng.normal(0, 2, n)
    rows = [["name", "weight", "made", "origin", "miles"]]
    for i in range(n):
        made = f"{1970 + month[i] // 12}-{1 + month[i] % 12:02d}-01"
        rows.append([f"car {i}", f"{weight[i]:.0f}", made, ["USA", "Europe", "Japan"][origin[i]], "" if i % 97 == 5 else f"{miles[i]:.2f}"])
    one_hot = np.eye(3)[origin]
    return "\t", rows, "miles", np.column_stack([weight, month, one_hot]), miles


@pytest.mark.parametrize("table", [penguins, cars])
def test_a_table_is_trained_by_init_and_run_alone(table, tmp_path):
    separator, rows, label, features, labels = table(np.random.default_rng(3))
    (tmp_path / "data.csv").write_text("".join(separator.join(row) + "\n" for row in rows))

    def trainerd(*words):
        done = subprocess.run([os.path.abspath(TRAINERD), *words], cwd=tmp_path, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    said = trainerd("init", "data.csv")
    assert re.search(rf"^label: {label}, ", said, re.MULTILINE), said
    # The same split for both: the rows of a file of their own are the test part.
    at = rows[0].index(label)
    keep = [i for i, row in enumerate(rows[1:]) if row[at] != ""]
    test = [i for i in keep if i % 4 == 0]
    train = [i for i in keep if i % 4 != 0]
    for name, part in (("train.csv", train), ("test.csv", test)):
        (tmp_path / name).write_text("".join(separator.join(rows[i]) + "\n" for i in [0] + [i + 1 for i in part]))
    trainerd("run", "data.toml", "--set", "data.file=train.csv", "--set", "data.test_file=test.csv")
    answers = trainerd("predict", "logs/data", "test.csv").splitlines()[1:]
    got = [line.split(",")[0] for line in answers]
    assert len(got) == len(test)

    if isinstance(labels[0], str):
        accuracy = np.mean(np.array(got) == labels[test])
        centres = {c: features[[i for i in train if labels[i] == c]].mean(axis=0) for c in set(labels)}
        nearest = [min(centres, key=lambda c: ((features[i] - centres[c]) ** 2).sum()) for i in test]
        assert accuracy >= np.mean(np.array(nearest) == labels[test]) - 0.02, (accuracy, said)
        return
    w, *_ = np.linalg.lstsq(features[train], labels[train], rcond=None)
    least = np.mean((features[test] @ w - labels[test]) ** 2)
    ours = np.mean((np.array(got, float) - labels[test]) ** 2)
    assert ours <= 1.05 * least, (ours, least, said)
