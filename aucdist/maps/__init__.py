"""Feature maps, which turn a linear model into an additive model, a kernel model or a model of a forest's leaves."""

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from aucdist.data.serialization import deserialize
from aucdist.errors import InputError, unknown
from aucdist.maps.base import Expander, FittedMap
from aucdist.maps.bins import BinExpander
from aucdist.maps.leaves import LeafExpander
from aucdist.maps.nystroem import NystroemMap

MAPS: dict[str, type[Expander]] = {"bins": BinExpander, "nystroem": NystroemMap, "leaves": LeafExpander}
"""Every feature map by its name in configurations and in `features=` of an estimator."""
OLD_PARAMETERS = {"pairs": "interactions", "pair_strength": "interaction_strength"}
"""The names that parameters had in 0.4.0, which are still read."""
OF_AUTO = {"readable": "{'map': 'auto', 'readable': True}", "metric": "{'map': 'auto', 'metric': ...}"}
"""What to write for the parameters that only the map `auto` has, in Python and in YAML."""


def expander_of(features: Any) -> Expander | None:
    """Return the unfitted transformer for the parameter `features` of an estimator or a configuration.

    Parameters
    ----------
    features : str, dict or Expander
        A name of `MAPS`; a dict with this name as ``map`` and parameters, as in ``{"map": "bins", "interactions": 10}``; or a
        transformer.

    Returns
    -------
    Expander or None
        None if there is no feature map.

    Raises
    ------
    InputError
        If the name is unknown, or a parameter does not exist or is outside its range.
    """
    if features is None:
        return None
    if isinstance(features, Expander):
        expander: Expander = clone(features)
    elif isinstance(features, str | Mapping):
        parameters = {
            OLD_PARAMETERS.get(key, key): value
            for key, value in ({"map": features} if isinstance(features, str) else features).items()
        }
        if "map" not in parameters:
            raise InputError(f"features has no key `map`: give one of {', '.join(MAPS)}")
        name = parameters.pop("map")
        if not isinstance(name, str) or name not in MAPS:
            raise unknown("feature map", name, [*MAPS, "auto"])
        expander = MAPS[name]()
        allowed = [key for key in expander.get_params() if key != "sparse_output"]
        for key in parameters:
            if key not in allowed:
                raise unknown(f"parameter of the feature map {name!r}:", key, allowed, OF_AUTO)
        expander.set_params(**parameters)
    else:
        raise InputError(
            f"features must be None, a name ({', '.join(MAPS)}), a dict with `map`, or a map; got {features!r}"
        )
    expander.check_parameters()
    return expander


def map_from_bytes(data: bytes) -> FittedMap:
    """Load a fitted map from the bytes that `aucdist.data.serialization.serialize` returned.

    Parameters
    ----------
    data : bytes
        The content of the file.

    Returns
    -------
    FittedMap

    Raises
    ------
    InputError
        If the bytes are not a map, or if its parts do not fit together.
    """
    fitted = deserialize(data)
    if not isinstance(fitted, FittedMap):
        raise InputError(
            f"the file contains no feature map, but {type(fitted).__name__}: copy or train the model again"
        )
    try:
        fitted.check()
    except (TypeError, AttributeError, IndexError, ValueError) as error:
        raise InputError(f"the feature map is damaged: {error}. Copy the model again, or train it again") from None
    return fitted


__all__ = ["BinExpander", "LeafExpander", "NystroemMap"]
