"""Data sets, real ones of scikit-learn and made ones, and how scikit-learn's defaults do on them.

`scores.json` has the scores of scikit-learn, which is too large for the suite: `make_scores.py` writes it, and the
real data, with scikit-learn and pandas installed. The split is the same for both.
"""

import csv
import gzip
import io
import pathlib
import random

HERE = pathlib.Path(__file__).parent
REAL = ["iris", "wine", "breast_cancer", "diabetes", "digits"]


def bends(r):
    """A number that bends: what is not a weighted sum, with words that shift it."""
    rows = [["size", "age", "district", "sold", "price"]]
    for _ in range(1500):
        size, age, district = r.uniform(30, 200), r.uniform(0, 80), r.choice(["north", "south", "east", "harbour"])
        base = 2000 * size ** 1.2 / 10 * (1.5 if district == "harbour" else 1) - 900 * abs(age - 40)
        sold = f"{r.randint(2015, 2022)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}"
        rows.append([f"{size:.1f}", f"{age:.0f}", district, sold, f"{base + r.gauss(0, 4000):.0f}"])
    return rows


def passengers(r):
    """Two classes by words, numbers with holes, and a name for each row."""
    rows = [["survived", "class", "sex", "age", "fare", "name"]]
    for i in range(900):
        rank, sex, age = r.choice([1, 2, 3]), r.choice(["male", "female"]), r.gauss(30, 14)
        odds = 1.2 * (2 - rank) + (2.4 if sex == "female" else 0) - 0.02 * age - 0.4
        lives = r.random() < 1 / (1 + 2.718281828 ** -odds)
        rows.append([str(int(lives)), str(rank), sex, "" if r.random() < 0.2 else f"{max(age, 1):.0f}",
                     f"{r.expovariate(0.1) * (4 - rank):.2f}", f"Passenger {i}, {'Mr' if sex == 'male' else 'Mrs'}"])
    return rows


def income(r):
    """Classes of uneven size by many words."""
    jobs, schools = [f"job {i}" for i in range(14)], ["none", "school", "college", "university"]
    worth = {job: r.gauss(0, 1) for job in jobs}
    rows = [["age", "job", "school", "hours", "gain", "income"]]
    for _ in range(2000):
        age, job, school, hours = r.uniform(17, 80), r.choice(jobs), r.randrange(4), r.gauss(40, 10)
        gain = r.choice([0] * 9 + [r.randrange(1000, 20000)])
        odds = worth[job] + school - 0.003 * (age - 50) ** 2 + 0.04 * (hours - 40) + gain / 5000 - 2
        rows.append([f"{age:.0f}", job, schools[school], f"{hours:.0f}", str(gain), ">50K" if r.random() < 1 / (1 + 2.718281828 ** -odds) else "<=50K"])
    return rows


def macro(r):
    """Sixteen years of numbers that move together, as Longley's."""
    rows = [["year", "prices", "product", "army", "people", "employed"]]
    for i in range(16):
        product, people = 234000 + 20000 * i + r.gauss(0, 6000), 107000 + 1500 * i
        rows.append([str(1947 + i), f"{83 + 2.2 * i + r.gauss(0, 1):.1f}", f"{product:.0f}", f"{r.uniform(1400, 3600):.0f}", str(people),
                     f"{60000 + 0.02 * (product - 234000) + 0.1 * (people - 107000) + r.gauss(0, 300):.0f}"])
    return rows


def wide(r):
    """More columns than rows."""
    rows = [[f"gene {i}" for i in range(300)] + ["tumour"]]
    for _ in range(90):
        kind = r.randrange(2)
        rows.append([f"{r.gauss(0.9 * kind if i < 12 else 0, 1):.3f}" for i in range(300)] + [["benign", "malign"][kind]])
    return rows


def waves(r):
    """Three classes of points on rings, which no weighted sum divides."""
    rows = [["x", "y", "ring"]]
    for _ in range(700):
        x, y = r.uniform(-3, 3), r.uniform(-3, 3)
        rows.append([f"{x:.3f}", f"{y:.3f}", ["inner", "middle", "outer"][min(2, int((x * x + y * y) ** 0.5 / 1.4))]])
    return rows


MADE = [bends, passengers, income, macro, wide, waves]
LABELS = {"bends": "price", "passengers": "survived", "income": "income", "macro": "employed", "wide": "tumour", "waves": "ring"}
NUMBERS = {"bends", "macro", "diabetes"}


def names():
    return REAL + [make.__name__ for make in MADE]


def rows_of(name):
    """Returns the rows, the header first, and the label's name."""
    for make in MADE:
        if make.__name__ == name:
            return make(random.Random(name)), LABELS[name]
    with gzip.open(HERE / "data" / f"{name}.csv.gz", "rt", newline="") as f:
        return list(csv.reader(f)), "target"


def split(name):
    """Returns the text of a training and of a test file, and the label's name: every third row or so tests."""
    rows, label = rows_of(name)
    order = list(range(1, len(rows)))
    random.Random(0).shuffle(order)
    tests = sorted(order[: round(0.3 * len(order))])
    trains = sorted(order[len(tests):])
    texts = []
    for part in (trains, tests):
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([rows[0]] + [rows[i] for i in part])
        texts.append(out.getvalue())
    return texts[0], texts[1], label
