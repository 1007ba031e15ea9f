"""What every document of the API has in common: ids as strings, pages with a cursor."""

from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

# JavaScript's numbers end at 2^53, ids of rows do not
Id = Annotated[str, BeforeValidator(str), Field(examples=["30064771073"])]
Item = TypeVar("Item")


class Document(BaseModel):
    """Base of all documents; reads the store's rows by attribute."""

    model_config = ConfigDict(from_attributes=True, extra="forbid", frozen=True)


class PageDocument(Document, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    next: str | None = Field(description="Pass it as `after` to get the next page; null when this is the last.")
