"""Prints the measures that `aucdist.metrics` makes from functions of counts: their signatures and docstrings, as Python code."""

import inspect

from aucdist import metrics

for name in metrics.__all__:
    thing = getattr(metrics, name)
    if inspect.isfunction(thing):
        parameters = [p.replace(annotation=p.empty) for p in inspect.signature(thing).parameters.values()]
        print(f"def {name}{inspect.Signature(parameters)}:\n    {inspect.getdoc(thing)!r}\n")
