"""Serves images by content hash; what a hash names never changes, so browsers may keep it for ever."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Response
from fastapi.responses import FileResponse

from app.api.dependencies import ServicesDep
from app.api.errors import ApiError
from app.store.errors import MediaError
from app.store.media import Size

router = APIRouter(tags=["images"])

_SERVED = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
_FOREVER = "private, max-age=31536000, immutable"

Sha256 = Annotated[str, Path(description="Content hash of the original bytes.", pattern=r"^[0-9a-f]{64}$")]
PictureSize = Annotated[Size, Path(description="192 px, 512 px or the original bytes.")]


@router.get(
    "/media/{sha256}/{size}",
    summary="Get an image",
    response_class=FileResponse,
    responses={200: {"content": {kind: {} for kind in sorted(_SERVED)}}, 304: {"description": "Not changed."}},
)
def get_image(
    sha256: Sha256,
    size: PictureSize,
    services: ServicesDep,
    if_none_match: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """The bytes of an image of a prompt."""
    try:
        media = services.store.media.open(sha256, size)
    except MediaError as error:
        raise ApiError(404, "damaged", f"the file of image {sha256} is damaged") from error
    if media is None or media.mime not in _SERVED:
        raise ApiError(404, "not_found", f"there is no image {sha256}")
    headers = {"ETag": f'"{media.etag}"', "Cache-Control": _FOREVER}
    if if_none_match is not None and headers["ETag"] in if_none_match:
        return Response(status_code=304, headers=headers)
    return FileResponse(media.path, media_type=media.mime, headers=headers)
