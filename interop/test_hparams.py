"""The HPARAMS tab of real TensorBoard compares runs of `trainerd run`, by their configs, flags and metrics."""

import json
import os
import subprocess
import urllib.request

import pytest

from harness.tensorboard import LOADERS, TensorBoard

TRAINERD = os.path.abspath(os.path.join(os.environ.get("TRAINERD_BIN_DIR", "bin"), "trainerd"))
JOB = """logdir = "logs/a"
[data]
file = "data.csv"
categories = ["2"]
test_fraction = 0.25
[model]
family = "mlp"
hidden = [8, 4]
optimizer = "adam"
[train]
steps = 40
"""


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    where = tmp_path_factory.mktemp("hparams")
    (where / "data.csv").write_text("".join(f"{i % 7},{i % 3},{'even' if i % 2 else 'odd'}\n" for i in range(80)))
    (where / "job.toml").write_text(JOB)

    def run(*words):
        done = subprocess.run([TRAINERD, "run", "job.toml", *words], cwd=where, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr

    run("--set", "train.steps=20")
    run()  # resumes, to a later step
    run("--logdir", "logs/b", "--set", "model.learning_rate=0.02", "--set", "supervisor.shards=2")
    return where / "logs"


def ask(board, what, **body):
    request = urllib.request.Request(f"{board.url}/data/plugin/hparams/{what}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.parametrize("loader", LOADERS)
def test_the_tab_compares_runs(logdir, loader):
    with TensorBoard(logdir, loader) as board:
        experiment = ask(board, "experiment", experimentName="")
        tags = {(m["name"].get("group", ""), m["name"]["tag"]) for m in experiment["metricInfos"]}
        assert {("", "loss"), ("", "accuracy"), ("eval", "accuracy"), ("eval", "loss")} <= tags
        names = [{"hparam": h["name"]} for h in experiment["hparamInfos"]]
        metrics = [{"metric": m["name"]} for m in experiment["metricInfos"]]
        groups = ask(board, "session_groups", experimentName="", allowedStatuses=["STATUS_SUCCESS", "STATUS_UNKNOWN", "STATUS_FAILURE", "STATUS_RUNNING"],
                     colParams=names + metrics, startIndex=0, sliceSize=100)["sessionGroups"]
    runs = {session["name"]: (group, session) for group in groups for session in group["sessions"]}
    assert set(runs) == {"a", "b"}
    for name, rate in (("a", 0.001), ("b", 0.02)):
        group, session = runs[name]
        values = group["hparams"]
        assert session["status"] == "STATUS_SUCCESS"
        assert values["model.learning_rate"] == pytest.approx(rate)
        assert (values["model.family"], values["model.optimizer"], values["model.hidden"]) == ("mlp", "adam", "[8, 4]")
        assert values["data.batch_size"] == 32 and values["data.test_fraction"] == 0.25
        assert not any(key.startswith(("logdir", "data.file")) for key in values)
        found = {(v["name"].get("group", ""), v["name"]["tag"]): v for v in session["metricValues"]}
        assert found["eval", "accuracy"]["trainingStep"] == 40
    assert runs["b"][0]["hparams"]["supervisor.shards"] == 2 and not runs["a"][0]["hparams"].get("supervisor.shards")


CHILD = """import os, sys
start = int(os.environ.get("TRAINERD_STEP", "0"))
for step in range(start + 1, 21):
    print(f"step={step} loss={1 / step}", flush=True)
    if step == 10:
        open(os.path.join(os.environ["TRAINERD_LOGDIR"], "ckpt-10.json"), "w").write("{}")
    if step == 15 and start == 0:
        sys.exit(1)
"""


@pytest.mark.parametrize("loader", LOADERS)
def test_the_tab_has_the_arguments_of_programs(tmp_path, loader):
    (tmp_path / "train.py").write_text(CHILD)
    for name, rate in (("a", 0.1), ("b", 0.5)):
        words = [TRAINERD, "run", "--logdir", f"logs/{name}", "--set", "child.checkpoints=ckpt-*.json", "--set", "supervisor.max_to_keep=2",
                 "--", "python3", "train.py", "--lr", str(rate), "--amp"]  # fmt: skip
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
    with TensorBoard(tmp_path / "logs", loader) as board:
        groups = ask(board, "session_groups", experimentName="", allowedStatuses=["STATUS_SUCCESS"],
                     colParams=[{"hparam": "lr"}, {"hparam": "amp"}], startIndex=0, sliceSize=100)["sessionGroups"]  # fmt: skip
    found = {session["name"]: group["hparams"] for group in groups for session in group["sessions"]}
    assert {name: (values["lr"], values["amp"]) for name, values in found.items()} == {"a": (0.1, True), "b": (0.5, True)}
    assert all(values["supervisor.max_to_keep"] == 2 for values in found.values())
