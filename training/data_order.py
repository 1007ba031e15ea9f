"""Which rows a step trains on: a function of seed and step alone, so that resuming needs no state."""

import random
from functools import lru_cache

from training.config import RunConfig
from training.errors import ConfigError


class DataOrder:
    """Epoch after epoch, each a seeded permutation; a step that meets the end of an epoch goes on in the next."""

    def __init__(self, rows: int, *, prompts_per_step: int, seed: int, shuffle: bool) -> None:
        self._rows = rows
        self._size = prompts_per_step
        self._seed = seed
        self._shuffle = shuffle
        self._epoch = lru_cache(maxsize=2)(self._make_epoch)

    def steps(self, epochs: int) -> int:
        """Steps after which every row was used in `epochs` passes; the last of them may begin the next pass."""
        return -(-epochs * self._rows // self._size)

    def rows(self, step: int) -> list[int]:
        """Row indices of a step; steps count from 1."""
        first = (step - 1) * self._size
        places = range(first, first + self._size)
        return [self._epoch(place // self._rows)[place % self._rows] for place in places]

    def further_rows(self, step: int, number: int) -> list[int]:
        """Rows to sample in the place of those that taught nothing, in the `number`-th further round of a step.

        Place by place; none of the step's own rows, and none twice, while the data has others.
        """
        own, needed = set(self.rows(step)), number * self._size
        rng = random.Random(f"{self._seed}/step/{step}/further")
        others: dict[int, None] = {}
        while len(others) < min(needed, self._rows - len(own)):
            if (row := rng.randrange(self._rows)) not in own:
                others[row] = None
        drawn = list(others) or self.rows(step)
        first = (number - 1) * self._size
        return [drawn[place % len(drawn)] for place in range(first, first + self._size)]

    def epoch(self, step: int) -> float:
        """Epochs that are done after a step."""
        return step * self._size / self._rows

    def coverage(self, last_step: int) -> str:
        """Such as: 100 steps of 8 prompts, 2.5 passes over 320 rows."""
        passes = f"{self.epoch(last_step):.4g}"
        return f"{last_step} steps of {self._size} prompts, {passes} passes over {self._rows} rows"

    def _make_epoch(self, epoch: int) -> list[int]:
        order = list(range(self._rows))
        if self._shuffle:
            random.Random(f"{self._seed}/epoch/{epoch}").shuffle(order)
        return order


def held_out_rows(rows: int, *, samples: int, seed: int) -> list[int]:
    """The rows of an evaluation, chosen once by the run's seed and in the dataset's order."""
    if samples >= rows:
        return list(range(rows))
    return sorted(random.Random(f"{seed}/evaluation").sample(range(rows), samples))


def check_sizes(config: RunConfig, *, rows: int, processes: int) -> None:
    """Raise ConfigError when a step cannot be filled: too few rows, or fewer prompts than processes."""
    prompts = config.optimization.prompts_per_step
    if rows < prompts and not config.data.cycle:
        raise ConfigError(
            f"a step needs {prompts} prompts (optimization.prompts_per_step) and the data has {rows} rows; use at most "
            f"{rows}, add rows, or set data.cycle = true to take rows several times a step"
        )
    if prompts < processes:
        raise ConfigError(
            f"{processes} processes cannot share {prompts} prompts a step; set optimization.prompts_per_step to "
            f"{processes} or more, or start fewer processes"
        )
