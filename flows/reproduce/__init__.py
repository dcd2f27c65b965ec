"""Papers reproduced: their tables and figures, run anew and held against the printed ones (`aucdist reproduce`).

A paper is a file ``configs/reproduce/<paper>/paper.yaml``. It holds experiments, and each is of a kind: the kind says what an
experiment is told, which tasks it takes, what the page shows of them and which CSVs there are. All else is the engine's:
tasks that were done are kept, the others go to the cluster, and the page is written.

A new kind is a module here with one class, and a row in `config.KINDS`:

1. The class derives from `kind.Kind`; its fields are the keys of the YAML. ``kind: Literal["name"]`` is its name. It
   declares ``datasets`` if it runs on data sets of the catalog, and ``targets`` if there are printed figures: in the YAML
   that is the name of a CSV beside the file, one row each.
2. ``tasks(versions)`` yields a `Key` and a mapping in types of JSON that holds all that decides the result (every seed, the
   data set's fingerprint); a result is kept for as long as that mapping stays the same. A kind without tasks leaves it out.
3. ``run(task)`` does one task in any process and returns its result, in types of JSON.
4. ``sections(name, results)`` returns what the page shows: words, rows of entries, drawings. ``files(name, results)`` returns
   the CSVs, ``tally(results)`` the counts that ``--json`` prints. Conclusions are computed from the results, never written down.
   Some results may be missing, where a data set is absent.

`table` and `course` are models to follow. `folds` holds what experiments over folds share, `lines` draws curves, and ``quick``
in the YAML needs nothing of a kind: it changes keys of an experiment and says which data sets stay.
"""
