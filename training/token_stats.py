"""Per-token statistics of a completion in a compact form: ids, sampler log-probabilities and entropies."""

import base64
import zlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class TokenStats:
    """Arrays of one completion's tokens, each of shape (T,): ids int32, logp and entropy in nats."""

    ids: np.ndarray
    logp: np.ndarray
    entropy: np.ndarray


def pack(stats: TokenStats) -> str:
    """Base64 of zlib of T, ids (int32), logp (float16), entropy (float16), little-endian: about 8 bytes a token."""
    blob = np.int32(len(stats.ids)).astype("<i4").tobytes()
    blob += stats.ids.astype("<i4").tobytes() + stats.logp.astype("<f2").tobytes()
    blob += stats.entropy.astype("<f2").tobytes()
    return base64.b64encode(zlib.compress(blob, 1)).decode("ascii")


def unpack(packed: str) -> TokenStats:
    """The inverse of pack, up to float16.  Raises ValueError on anything else."""
    try:
        blob = zlib.decompress(base64.b64decode(packed, validate=True))
    except zlib.error as error:
        raise ValueError("not packed token statistics") from error
    count = int(np.frombuffer(blob, "<i4", 1)[0])
    if len(blob) != 4 + 8 * count:
        raise ValueError(f"packed token statistics of {count} tokens need {4 + 8 * count} bytes, got {len(blob)}")
    return TokenStats(
        ids=np.frombuffer(blob, "<i4", count, 4),
        logp=np.frombuffer(blob, "<f2", count, 4 + 4 * count),
        entropy=np.frombuffer(blob, "<f2", count, 4 + 6 * count),
    )
