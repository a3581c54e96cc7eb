"""All programs: importing their modules fills the table."""

from graphs import arrays, complexes, fields, firsts, flow, half_optimizers, kinds, layers, losses, maths, media, models, networks, optimizers, pipelines, races, randoms, rare, recurrent, scatters, schedules, seldom, summaries, texts, trainings  # noqa: F401
from graphs.recorder import PROGRAMS  # noqa: F401
