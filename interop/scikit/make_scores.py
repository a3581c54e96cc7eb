"""Writes scores.json and the real data: python interop/scikit/make_scores.py, with scikit-learn and pandas."""

import gzip
import io
import json
import sys
import warnings

import pandas
import sklearn
import sklearn.datasets
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

sys.path.insert(0, str(__import__("pathlib").Path(__file__).parents[1]))
import scikit

DROP = {"passengers": ["name"]}
warnings.filterwarnings("ignore")


def write_real(name):
    frame = getattr(sklearn.datasets, f"load_{name}")(as_frame=True, **({"scaled": False} if name == "diabetes" else {})).frame
    if name == "iris":
        frame["target"] = frame["target"].map(dict(enumerate(["setosa", "versicolor", "virginica"])))
    frame.columns = [c.replace(" (cm)", "") for c in frame.columns]
    with open(scikit.HERE / "data" / f"{name}.csv.gz", "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as f:
        f.write(frame.to_csv(index=False, lineterminator="\n", float_format="%.6g").encode())


def scores(name):
    train, test, label = scikit.split(name)
    train, test = (pandas.read_csv(io.StringIO(text)).drop(columns=DROP.get(name, [])) for text in (train, test))
    for frame in (train, test):
        for column in set(frame) & {"sold"}:
            frame[column] = (pandas.to_datetime(frame[column]) - pandas.Timestamp(0)).dt.days
    x, y = train.drop(columns=label), train[label]
    words = [c for c in x if x[c].dtype == object or str(x[c].dtype) == "str"]
    numbers = [c for c in x if c not in words]
    models = [LinearRegression(), MLPRegressor(random_state=0, max_iter=500)] if name in scikit.NUMBERS else [
        LogisticRegression(max_iter=1000), MLPClassifier(random_state=0)]
    found = {}
    for model in models:
        pre = make_column_transformer((make_pipeline(SimpleImputer(), StandardScaler()), numbers), (OneHotEncoder(handle_unknown="ignore"), words),
                                      sparse_threshold=0)
        found[type(model).__name__] = round(make_pipeline(pre, model).fit(x, y).score(test.drop(columns=label), test[label]), 4)
    return found


def main():
    (scikit.HERE / "data").mkdir(exist_ok=True)
    for name in scikit.REAL:
        write_real(name)
    table = {"scikit-learn": sklearn.__version__, "scores": {name: scores(name) for name in scikit.names()}}
    (scikit.HERE / "scores.json").write_text(json.dumps(table, indent=1) + "\n")


main()
