"""A few prompts of a dataset, the longest among them, tried with the real processor before the first step."""

from training.config import DataConfig
from training.datasets import PromptDataset
from training.image_tokens import ImageShapeError
from training.policy import Policy
from training.processor_settings import merged_settings
from training.prompts import PromptEncoder
from training.resizing import bounded_size
from training.token_budget import Sizes, TokenBudget

MEASURED_ROWS = 4096
TRIED_ROWS = 8


def check_prompts(policy: Policy, dataset: PromptDataset, data: DataConfig) -> None:
    """Encode the first rows and, where data.max_prompt_length is set, those whose images are the most tokens.

    For the latter the image headers of at most MEASURED_ROWS rows, spread over the dataset, are read.  Raises
    DatasetError for a prompt that the model cannot be given.
    """
    encoder = PromptEncoder(policy, data)
    tried = list(range(min(TRIED_ROWS, len(dataset))))
    if data.max_prompt_length is not None:
        budget = processor_budget(policy, data)
        rows = range(0, len(dataset), -(-len(dataset) // MEASURED_ROWS))
        weights = {row: _weight(budget, dataset.image_sizes(row), data) for row in rows}
        tried += sorted(rows, key=lambda row: -weights[row])[:TRIED_ROWS]
    for row in tried:
        encoder.encode(dataset[row])


def processor_budget(policy: Policy, data: DataConfig) -> TokenBudget | None:
    """How a loaded processor counts image tokens; None for a family that cannot tell."""
    processor, tokens = policy.processor, policy.family.tokens
    if tokens is None:
        return None
    settings = merged_settings({**processor.to_dict(), "image_processor": processor.image_processor.to_dict()})
    return TokenBudget(tokens, settings, data)


def _weight(budget: TokenBudget | None, sizes: Sizes, data: DataConfig) -> float:
    """Image tokens of a row, or the area of its images where the family cannot tell; a refused shape comes first."""
    try:
        needed = budget.needed(sizes) if budget else None
    except ImageShapeError:
        return float("inf")
    areas = (width * height for width, height in (bounded_size(*size, data) for size in sizes))
    return sum(areas) if needed is None else needed
