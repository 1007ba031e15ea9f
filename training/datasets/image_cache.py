"""Images that were read before, kept as bytes up to a budget."""

from collections import OrderedDict
from collections.abc import Callable

from training.images import SourceImage

BUDGET_BYTES = 256 * 1024 * 1024


class ImageCache:
    """Least recently used images are dropped first."""

    def __init__(self, budget: int = BUDGET_BYTES) -> None:
        self._budget = budget
        self._size = 0
        self._kept: OrderedDict[str, SourceImage] = OrderedDict()

    def get(self, path: str, read: Callable[[], SourceImage]) -> SourceImage:
        """The image of this path, read at its first use."""
        image = self._kept.get(path)
        if image is not None:
            self._kept.move_to_end(path)
            return image
        image = self._kept[path] = read()
        self._size += len(image.data)
        while self._size > self._budget and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._size -= len(dropped.data)
        return image
