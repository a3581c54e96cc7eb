"""Starts the processes of a job on a cluster, one for each worker."""

from harness.commands import DIGITS_CONFIG


class Replica:
    """Starts a job's process for a task, of the digits without an end unless told otherwise; task 0 is the chief. All share
    one logdir. A setting that is None is left out."""

    def __init__(self, cluster, commands, logdir):
        self._cluster, self._commands, self.logdir, self._started = cluster, commands, logdir, []

    def __call__(self, task=0, config=DIGITS_CONFIG, **settings):
        job = {
            "master": self._cluster.target(task), "cluster__ps_tasks": len(self._cluster.spec.get("ps", ())), "cluster__task": task,
            "cluster__workers": len(self._cluster.spec["worker"]), "supervisor__is_chief": str(task == 0).lower(),
            "supervisor__save_model_steps": 50, "supervisor__recovery_wait_secs": 1, "train__steps": 1_000_000, "train__eval_steps": 0,
        } | settings
        given = {key: value for key, value in job.items() if value is not None}
        self._started.append(self._commands.start_training(self.logdir, config, **given))
        return self._started[-1]

    def kill(self):
        """Kills what is running still."""
        for process in self._started:
            if process.running:
                process.kill()
