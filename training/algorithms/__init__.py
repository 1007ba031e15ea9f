"""Algorithms: each module is two pure functions, `advantages(config, scored)` and `loss(config, logp_BT, batch)`.

Shape suffixes used everywhere in training: `P` prompts, `G` completions per prompt, `B = P*G` sequences in group order
(all completions of the first prompt first), `T` completion tokens, `K` reward functions, `V` vocabulary.
"""

from training.algorithms import grpo, rloo
from training.algorithms.types import Algorithm

ALGORITHMS: dict[str, Algorithm] = {"grpo": grpo, "rloo": rloo}
"""By the `name` of the algorithm's config class."""
