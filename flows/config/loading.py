"""Read configurations from YAML files and `--set key=value`, check them, and write them as YAML.

`Strict` is the base of all configuration models.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args, get_origin

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from aucdist.data.formats.source_fields import Names as Names, Natural as Natural, Text as Text
from aucdist.data.own_files import faults_of, pattern_of
from aucdist.data.sources import catalog_folder
from aucdist.data.storage.guard import read_configuration
from aucdist.data.storage.urls import SCHEME, enter, hide, require
from aucdist.errors import InputError, Json, check_keys_known, unknown

RUN_NAME = pattern_of("a name of letters, digits and . _ + -", r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")
"""Names of runs and checkpoints, which become parts of paths."""


@dataclass(frozen=True)
class Cli:
    """How a field of a command's model is given on the command line.

    A field without this annotation is an option with the name of the field.

    Attributes
    ----------
    position : int
        The position of an argument among the arguments, from 1. It is 0 for an option.
    flag : str
        The name of the option, if it differs from that of the field.
    metavar : str
        The placeholder of the value in the help.
    data : bool
        Whether the value is a data set, which `flows.config.data.source_from_name` finds. ``--set`` then changes its keys.
    labelled : bool
        Whether the rows of the data set need a label.
    required : bool
        Whether the command line has to give the value, although a configuration may give it in another way.
    hidden : bool
        Whether only a configuration can give the value.
    """

    position: int = 0
    flag: str = ""
    metavar: str = ""
    data: bool = False
    labelled: bool = False
    required: bool = False
    hidden: bool = False


Name = Annotated[str, Field(pattern=RUN_NAME)]
TextList = Annotated[list[str], Field(default=[])]
"""A list of texts, which is empty by default."""
AtLeastOne = Annotated[int, Field(ge=1)]
AtLeastTwo = Annotated[int, Field(ge=2)]
Gap = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A length of time in the unit of a column."""
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
ShareOrNone = Annotated[float | None, Field(gt=0, lt=1)]
Rate = Annotated[float | None, Field(gt=0, le=1)]
BelowOne = Annotated[float | None, Field(ge=0, lt=1)]
"""A share that may be 0, but not 1; None if it is not given."""
PathOrUrl = Annotated[str, Field(min_length=1), AfterValidator(enter)]
"""A path or a URL, which may not be empty: the length is checked first, for the sake of the message."""
UrlOption = Annotated[PathOrUrl | None, Cli(metavar="URL")]
"""An option that takes a path or a URL, which may not be empty."""
FileOption = Annotated[PathOrUrl | None, Cli(metavar="FILE")]
CountOption = Annotated[int | None, Field(ge=1), Cli(metavar="N")]
CopyOption = Annotated[TextList, Cli(flag="--copy", metavar="COLUMN")]
ColumnOption = Annotated[str | None, Cli(metavar="COLUMN")]
SettingsOption = Annotated[TextList, Cli(flag="--set", metavar="KEY=VALUE")]
NameArgument = Annotated[str, Cli(position=1)]
FolderArgument = Annotated[PathOrUrl, Cli(position=1)]
"""The first argument: a folder or URL."""


class Strict(BaseModel):
    """A configuration model that refuses unknown keys."""

    # Validators are built when they are first used. Building those of all commands would take as long as reading a small file.
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _keys_and_numbers(cls, content: Any) -> Any:
        """Raise an InputError unless the content is a mapping without unknown keys.

        True and false are refused where numbers are expected, because pydantic would read them as 1 and 0.
        """
        if not isinstance(content, dict | BaseModel):
            keys = list(cls.model_fields)[:4]
            raise ValueError(f"must be a mapping with keys such as {', '.join(keys)}, as in {{{keys[0]}: ...}}")
        if cls.model_config["extra"] == "forbid":
            check_keys_known(content, cls.model_fields, cls._keys_below)
        for key, value in content.items() if isinstance(content, dict) else ():
            if isinstance(value, bool) and key in cls.model_fields:
                kinds = kinds_of(cls.model_fields[key].annotation)
                if kinds & {int, float} and not kinds & {bool, str, Any}:
                    raise ValueError(f"`{key}` must be a number; got {str(value).lower()}")
        return content

    @classmethod
    def _keys_below(cls) -> dict[str, str]:
        """Return the path of each key in the mappings below this one, such as ``model.lam`` for ``lam``."""
        paths: dict[str, str] = {}
        for name, field in cls.model_fields.items():
            for kind in kinds_of(field.annotation):
                below = getattr(kind, "_keys_below", dict)() | {key: key for key in getattr(kind, "model_fields", ())}
                paths = {key: f"{name}.{path}" for key, path in below.items()} | paths
        return paths

    @model_validator(mode="after")
    def _checked(self) -> Self:
        self._check()
        return self

    def _check(self) -> None:
        """Raise an InputError if values contradict each other."""


def kinds_of(annotation: Any) -> set[Any]:
    """Return the types that a union or a list consists of. For a list, the type `list` is one of them."""
    parts = get_args(annotation)
    outer = {list} if get_origin(annotation) is list else set()
    return {annotation} if not parts else outer.union(*(kinds_of(part) for part in parts))


Config = TypeVar("Config", bound=BaseModel)
MAX_VALUES = 100_000
"""The largest number of values of a YAML file, with its aliases written out."""
MAX_DEPTH = 50
"""The largest number of levels of a YAML file."""
MAX_VALUE = 300
"""The largest number of characters of a value in an error."""
SEPARATORS = (",", "|", "'")


def configs_folder(kind: str) -> Path:
    """Return the folder of the project's configurations of one kind, such as data, train or cluster."""
    return catalog_folder().parent / kind


class _Loader(yaml.SafeLoader):
    """A SafeLoader that follows YAML 1.2 where this prevents mistakes.

    It reads 1e-3 as a number, and yes, no, on and off as strings. It refuses duplicate keys.
    """

    yaml_implicit_resolvers: ClassVar = {  # type: ignore[misc]  # as yaml itself does
        first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:bool"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping. A duplicate key is an error."""
        keys = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in keys:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
            keys.add(key)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """A SafeDumper that quotes strings such as 1e-3, because `_Loader` would read them as numbers."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
    )


def parse_yaml(text: str | bytes, where: str) -> Any:
    """Parse YAML. Bytes are UTF-8 or UTF-16, and `where` is the name of the text in errors.

    Raises
    ------
    InputError
        If the text is not valid YAML, is nested too deeply, or has so many aliases that it would fill the memory.
    """
    try:
        return _expanded(yaml.load(text, _Loader), itertools.count())
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        problem = str(getattr(e, "problem", None) or e)[:MAX_VALUE]
        raise InputError(
            f"{where}{f', line {mark.line + 1}, column {mark.column + 1}' if mark else ''}: this is not valid YAML: {problem}"
        ) from None
    # For example by `!!int x`.
    except (ValueError, AttributeError, TypeError, LookupError, OverflowError, RecursionError) as e:
        raise InputError(f"{where}: this is not valid YAML: {type(e).__name__}: {str(e)[:MAX_VALUE]}") from None


def _expanded(content: Any, count: Iterator[int], depth: int = 0) -> Any:
    """Return the content of a YAML file with URLs parsed (see `aucdist.data.storage.urls`) and aliases expanded."""
    if next(count) > MAX_VALUES or depth > MAX_DEPTH:
        raise ValueError(f"more than {MAX_VALUES} values with its aliases written out, or more than {MAX_DEPTH} levels")
    if isinstance(content, dict):
        return {_expanded(key, count): _expanded(value, count, depth + 1) for key, value in content.items()}
    if isinstance(content, list):
        return [_expanded(value, count, depth + 1) for value in content]
    return enter(content) if isinstance(content, str) and SCHEME.match(content) else content


def find_config(config: str, kind: str = "train") -> Path:
    """Return the file of a configuration, given as a path or as a name in ``configs/<kind>``.

    Raises
    ------
    InputError
        If there is none.
    """
    path = Path(config)
    if path.is_file():
        return path
    folder = configs_folder(kind)
    names = sorted(p.stem for p in folder.glob("*.yaml"))
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        raise InputError(
            f"there is no configuration file {config!r}."
            f"{''.join(f' Did you mean {str(p)!r}?' for p in map(path.with_suffix, ('.yaml', '.yml')) if p.is_file())} Give a "
            f"path, or one of these names: {', '.join(names)}"
        )
    if config not in names:
        raise unknown("configuration", config, names)
    return folder / f"{config}.yaml"


class FileOptions(Strict):
    """The options of a command that reads its configuration from a file.

    The file has the model `config_class`, and the project's own files are in ``configs/<folder>``."""

    folder: ClassVar[str]
    config_class: ClassVar[type[BaseModel]]

    config: NameArgument
    """A YAML file, or the name of one that comes with the project."""
    settings: SettingsOption
    """Change a key, as in --set model.lam=1e-2. May be repeated."""

    def load(self) -> Any:
        """Return the configuration."""
        return load_config(self.config_class, self.folder, self.config, self.settings, getattr(self, "output", None))


def load_config(model: type[Config], kind: str, config: str, settings: Sequence[str], output: str | None) -> Config:
    """Read a configuration.

    Parameters
    ----------
    model : type
        The pydantic model of the configuration.
    kind : str
        The kind of configuration. The project's own ones are in ``configs/<kind>``.
    config : str
        A path, or a name in that folder.
    settings : sequence of str
        Changes of keys, each ``key.sub=value`` with a value in YAML.
    output : str or None
        The new value of the key ``output``, or None to keep it.

    Raises
    ------
    InputError
        If the configuration is wrong. The message names the file and the key.
    """
    path = find_config(config, kind)
    return config_of(model, read_mapping(path), str(path), path.parent, settings, output)


def config_of(
    model: type[Config], raw: Json, where: str, folder: Path, settings: Sequence[str], output: str | None
) -> Config:
    """Return the configuration with the content of a YAML file. It raises the same errors as `load_config`.

    Parameters
    ----------
    model : type
        The pydantic model of the configuration.
    raw : dict
        The content of the file.
    where : str
        The name of the file in error messages.
    folder : Path
        The folder in which relative paths are looked up first.
    settings : sequence of str
        Changes of keys, as for `load_config`.
    output : str or None
        The new value of the key ``output``, or None to keep it.
    """
    for setting in settings:
        apply_setting(raw, setting)
    if output is not None:
        raw["output"] = output
    return validated(model, find_sources(raw, folder), where)


def validated(model: type[Config], content: Any, where: str, options: Mapping[str, str] = {}) -> Config:
    """Return the configuration of parsed content.

    Parameters
    ----------
    model : type
        The pydantic model of the configuration.
    content : object
        The parsed content.
    where : str
        The name of the content in error messages.
    options : mapping of str to str, default={}
        For each key the option of the command line that sets it. If a key is missing, the error shows the first of the
        `examples` of its field.

    Raises
    ------
    InputError
        If the content is wrong. The message has a line for each wrong key, and `where` in each line.
    """
    try:
        return model.model_validate(content)
    except ValidationError as e:
        lines = []
        for key, text in faults_of(e).items():
            first, dot, rest = key.partition(".")
            examples = getattr(model.model_fields.get(key), "examples", None)
            if examples and text == "must be given":
                text += f", as in --set '{key}={yaml.dump(examples[0], default_flow_style=True).strip()}'"
            text = re.sub("`(\\w+)`", lambda name: options.get(name[1], name[0]), text)
            lines.append(": ".join(filter(None, (where, f"{options.get(first, first)}{dot}{rest}", text))))
        raise InputError(hide("\n".join(lines)).replace(": must", " must")) from None


def read_mapping(path: Path) -> Json:
    """Read a YAML file whose outermost value is a mapping."""
    raw = parse_yaml(read_configuration(path), str(path))
    if not isinstance(raw, dict):
        raise InputError(
            f"{path}: the file is {'empty' if raw is None else 'no configuration'}. A configuration has lines of the form `key: "
            "value`. For a file of data, `aucdist init FILE --label COLUMN` writes one"
        )
    return raw


def find_sources(content: Any, folder: Path) -> Any:
    """Return the content of a YAML file with the relative paths of its sources made absolute.

    Relative paths are looked up in the folder of the file, then in the current folder, and then below AUCDIST_DATA. Sources of
    the format ``embedded`` have no files.

    Raises
    ------
    InputError
        If a path is in none of these folders. The message lists the paths that were tried.
    """
    if isinstance(content, list):
        return [find_sources(value, folder) for value in content]
    if not isinstance(content, dict):
        return content
    absolute = {key: find_sources(value, folder) for key, value in content.items()}
    paths = content.get("source")
    if "format" in content and content["format"] != "embedded":
        if isinstance(paths, str) and paths:
            absolute["source"] = require(paths, [folder])
        elif isinstance(paths, list):
            absolute["source"] = [require(s, [folder]) if isinstance(s, str) and s else s for s in paths]
    return absolute


def apply_setting(raw: Json, setting: str) -> None:
    """Apply a setting ``key.sub=value`` of the command line to the content of a YAML file."""
    key, equals, value = setting.partition("=")
    parts = key.strip().split(".")
    where = f"--set {key}"  # without the value, which may be a secret
    if not equals or not all(parts):
        raise InputError(f"{where}: `key=value` is expected, as in --set model.lam=1e-2")
    at = raw
    for i, part in enumerate(parts[:-1]):
        below = at.setdefault(part, {})
        if part == "cluster":  # a name is replaced by its configuration, so that the setting can change a key of it
            below = at[part] = named_cluster(below)
        if not isinstance(below, dict):
            raise InputError(
                f"{where}: {'.'.join(parts[: i + 1])!r} is a value and has no keys below it: correct the key"
            )
        at = below
    # The name of a class is the text that was typed, because YAML would convert `false`, `null`, `12:30` and `2024-01-31`. The
    # same holds for a single punctuation mark, as in --set separator=, which has a meaning in YAML, and for a format of dates,
    # as in --set date_format=%d.%m.%Y.
    text = value.strip()
    is_class = parts[-1] == "positive" and text and text[0] not in "[{'\""
    at[parts[-1]] = text if is_class or text in SEPARATORS or text[:1] == "%" else parse_yaml(value, where)


def flattened(content: Json) -> Json:
    """Flatten nested mappings. The key of each value is its path, such as ``model.lam``."""
    flat: Json = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": below for key, below in flattened(value).items()}
        else:
            flat[str(name)] = value
    return flat


def named_cluster(cluster: Any) -> Any:
    """Return the configuration of a cluster. A string is the name of a file in ``configs/cluster``, or its path."""
    return read_mapping(find_config(cluster, "cluster")) if isinstance(cluster, str) else cluster


def to_yaml(config: Any) -> str:
    """Return a configuration as YAML, with all parameters of its `model`."""
    resolved = config.model_dump(mode="json", exclude_none=True)
    resolved["model"] |= config.model.resolved
    return yaml_text(resolved)


def yaml_text(content: Any) -> str:
    """Return content as YAML. Secrets are removed."""
    return hide(yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=4096))
