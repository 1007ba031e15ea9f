"""The built-in demo models by name, known without torch."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuiltInModel:
    """A model that is made at first use: `answer` is the form of the answers that its warm start teaches."""

    description: str
    answer: str
    target_probability: float


BUILT_IN: dict[str, BuiltInModel] = {
    "demo-color": BuiltInModel(
        "SmolVLM of 0.8 M parameters, made here and half taught to name colors: 'red'", "{answer}", 0.33
    ),
    "demo-tags": BuiltInModel(
        "The same, half taught to answer in tags: '<answer>red</answer>'", "<answer>{answer}</answer>", 0.33
    ),
}


def split_seed(path: str) -> tuple[str, int]:
    """`demo-color` is made with seed 0, `demo-color@3` with seed 3.  Raises ValueError for another ending."""
    name, _, seed = path.partition("@")
    return name, int(seed or 0)


def is_built_in(path: str) -> bool:
    """Whether a model path names a built-in model, with or without a seed."""
    name, _, seed = path.partition("@")
    return name in BUILT_IN and (seed.isdecimal() or "@" not in path)
