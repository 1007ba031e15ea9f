"""Prompts with images from the built-in dataset or local files, free of torch."""

from training.config import DataConfig
from training.datasets.access import Access
from training.datasets.easy_vqa import NAME as EASY_VQA
from training.datasets.easy_vqa import open_easy_vqa
from training.datasets.faults import DataFault
from training.datasets.files import open_file
from training.datasets.prompts import PromptDataset
from training.datasets.sample import Dataset, Sample

__all__ = ["Access", "DataFault", "Dataset", "PromptDataset", "Sample", "open_dataset"]


def open_dataset(config: DataConfig, *, split: str | None = None, access: Access) -> PromptDataset:
    """Open the dataset of a configuration, at another split when one is given; images are read when asked for.

    Raises DataFault when source, subset, split or a column that the configuration maps does not exist.
    """
    split = split or config.split
    builtin = config.source == EASY_VQA
    table = open_easy_vqa(split, config.subset) if builtin else open_file(config, split, access)
    dataset = PromptDataset(table, config)
    dataset.check_columns()
    return dataset
