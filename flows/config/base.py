"""The base of all configuration models."""

from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, model_validator

from aucdist.data.storage.urls import Location
from aucdist.errors import refuse_unknown_keys

NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
"""Names of runs and checkpoints, which become parts of paths."""


@dataclass(frozen=True)
class Cli:
    """How a field of a command's model is given on the command line.

    `place`: of an argument among the arguments, from 1; 0 for an option.
    `flag`: the name of the option, if it is not that of the field.
    `metavar`: what stands for the value in the help.
    `data`: the value is a data set, which `flows.config.sources.source_from_name` finds, and ``--set`` changes its keys.
    `labelled`: the rows of the data set need a label.
    `required`: the command line has to give it, although a configuration may say it in another way.
    """

    place: int = 0
    flag: str = ""
    metavar: str = ""
    data: bool = False
    labelled: bool = False
    required: bool = False


UrlOption = Annotated[Location | None, Field(min_length=1), Cli(metavar="URL")]
"""An option that takes a path or a URL, which may not be empty."""
FileOption = Annotated[Location | None, Field(min_length=1), Cli(metavar="FILE")]
CountOption = Annotated[int | None, Field(ge=1), Cli(metavar="N")]


class Strict(BaseModel):
    """A model that refuses keys it does not know."""

    # What a command does not validate is not built, which would take as long as reading a small file.
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _keys_and_numbers(cls, content: Any) -> Any:
        """Refuse unknown keys, and true and false where a number is needed, which pydantic would read as 1 and 0."""
        if cls.model_config["extra"] == "forbid":
            refuse_unknown_keys(content, cls.model_fields)
        for key, value in content.items() if isinstance(content, dict) else ():
            if isinstance(value, bool) and key in cls.model_fields:
                kinds = kinds_of(cls.model_fields[key].annotation)
                if kinds & {int, float} and not kinds & {bool, str, Any}:
                    raise ValueError(f"`{key}` must be a number; got {str(value).lower()}")
        return content


def kinds_of(annotation: Any) -> set[Any]:
    """Return the types that a union or a list is made of, and list itself if it is one."""
    parts = get_args(annotation)
    outer = {list} if get_origin(annotation) is list else set()
    return {annotation} if not parts else outer.union(*(kinds_of(part) for part in parts))
