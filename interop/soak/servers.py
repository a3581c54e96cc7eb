"""A job on TensorFlow's servers, killed and frozen by the nemesis of the interop suite."""

from cluster import Cluster
from harness import nemesis
from harness.replica import Replica
from soak import judges

LONGEST = 35  # seconds: longer than any log may be silent


def train_on_servers(place, dice):
    """Plays a round. Returns what came of it."""
    logs = place.folder / "servers"
    logs.mkdir()
    config = place.folder / "job" / "job.toml"
    with Cluster(logs, place.about["ps"], place.about["workers"]) as cluster:
        replica = Replica(cluster, place.commands, place.logdir)
        try:
            with judges.onlooker(place, dice) as shows:
                reached = _suffer(place, dice, nemesis.Nemesis(replica, cluster, place.commands, config, train__eval_steps=None))
                shows(judges.curves(place.logdir))
        finally:
            replica.kill()
    place.worlds.checkpoints += len(judges.load_all(place.logdir))
    judges.assert_no_temporary(place.logdir)
    return f"{place.about['ps']} parameter servers, {place.about['workers']} workers, step {reached}"


def _suffer(place, dice, victim):
    victim.await_progress(0)
    for blow in nemesis.choose(dice.getrandbits(32), dice.randrange(1, 5), LONGEST, victim.victims):
        place.suffer(str(blow))
        victim.strike(blow)
    victim.end()
    return victim.announced()
