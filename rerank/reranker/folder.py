"""The folder of a reranker: models, tables, weights, and a manifest that names the features in order."""

import contextlib
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from features.models.config import BASE, CHECKPOINT, FOLD_WEIGHTS
from features.progress import log
from features.request import FeatureRequest, is_pretrained, labelled_requests, row_of, runs_code
from moses_io.files.errors import InputError, at, shown
from moses_io.files.json_files import read_json, record_of, write_json
from moses_io.files.streams import MAX_NAME_BYTES, digest
from moses_io.files.text import whole
from moses_io.input_filters import InputFilters
from moses_io.weights import read_weight_file, weight_files, write_weights
from rerank import __version__
from rerank.confidence.confidence import CONFIDENCE
from rerank.linear.shortlist import ShortlistSettings
from rerank.reranker import MANIFEST
from rerank.systems.translations import CandidateRequest, check_candidates, check_names

FORMAT = 5
"""Version of the folder format.

Version 2 introduced models that add candidates, version 4 shortlists, version 5 input filters. The models in folders
of version 1 and 2 have older names of settings, see `features.models.settings.RENAMED`.
"""

WEIGHTS = "weights.ini"
SHORTLIST_WEIGHTS = "shortlist.ini"
CARD = "README.md"

_SUBFOLDERS = {"models": "models", "folder": "models", "files": "tables", "weights": "tables"}
"""Subfolders for files that features read, by `Kind.takes`."""


MAX_COPY_BYTES = 10**9
"""Maximum bytes of a pretrained model that is copied. A larger one is linked, and its digests are checked."""


@dataclass(frozen=True)
class Manifest:
    """The content of `reranker.json`.

    Attributes:
        features: `KIND[:ARG]` by label, in the order of scoring. Paths are relative to the folder.
        files: digest of each file, by its relative path.
        tuned: signature of the tuning.
        candidates: `SIZE:FOLDER,…` of the models that add candidates, by the name of their list.
        code: folder in which commands run and in which modules of users are searched, or empty for the working folder.
        shortlist: features that are computed only for the best candidates by the others, or None if there are none.
        input_filter: names of the filters for sources and candidates, or empty if there are none.
    """

    features: Mapping[str, str]
    files: Mapping[str, str]
    tuned: str
    candidates: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    shortlist: ShortlistSettings | None = None
    input_filter: str = ""

    @property
    def signature(self) -> str:
        """Digest of features, files, candidates, shortlist and input filters."""
        parts: list[Any] = [self.features, self.files, *([self.candidates] if self.candidates else [])]
        parts += [asdict(self.shortlist)] if self.shortlist else []
        parts += [self.input_filter] if self.input_filter else []
        content = json.dumps(parts, sort_keys=True).encode()
        return f"reranker|sha256:{hashlib.sha256(content).hexdigest()[:12]}"


def write_folder(
    folder: Path,
    requests: Sequence[FeatureRequest],
    weights: str,
    tuned: str,
    *,
    confidence: str = "",
    candidates: Sequence[CandidateRequest] = (),
    shortlist: ShortlistSettings | None = None,
    shortlist_weights: str = "",
    input_filter: str = "",
    link: bool = False,
) -> Manifest:
    """Make the folder of a reranker.

    Models, language models and tables are copied, or linked by symbolic links. Files of scores are not copied, because
    they belong to one list. Code of users is not copied: commands run in their original folder, because another folder
    may have another program of this name. Modules are also searched there.

    Args:
        folder: the folder to make.
        requests: the features, in the order of scoring.
        weights: weight file with the features of the reranker and of the list.
        tuned: signature of the tuning.
        confidence: file of the sentence-level confidence estimation, or empty for none.
        candidates: models that add candidates.
        shortlist: features that are computed only for the best candidates by the others, or None if there are none.
        shortlist_weights: weight file that selects the shortlist, or empty if there is none.
        input_filter: names of the filters for sources and candidates, or empty if there are none.
        link: whether to link to models and tables instead of copying them.

    Raises:
        InputError: the folder exists, or a file cannot be copied.
    """
    with _copying(folder):
        folder.mkdir(parents=True)
        subfolders = _Subfolders(folder, link)
        features = {request.label: _add_feature(request, subfolders).text for request in requests}
        added = {}
        for each in candidates:
            add = subfolders.add_pretrained if is_pretrained(each.folders[0]) else partial(subfolders.add, "models")
            added[each.name] = each.moved(add).text
        shutil.copyfile(weights, folder / WEIGHTS)
        if confidence:
            shutil.copyfile(confidence, folder / CONFIDENCE)
        if shortlist:
            shutil.copyfile(shortlist_weights, folder / SHORTLIST_WEIGHTS)
    code = next((request.folder for request in requests if runs_code(request.text)), "")
    manifest = Manifest(features, _files(folder), tuned, added, code, shortlist, input_filter)
    _write_manifest(folder, manifest)
    return manifest


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder, without optional values that are empty."""
    required = ("features", "files", "tuned")
    values = {name: value for name, value in asdict(manifest).items() if value or name in required}
    write_json(str(folder / MANIFEST), {"format": FORMAT, "version": __version__, **values}, indent=2)


@contextlib.contextmanager
def _copying(folder: Path) -> Iterator[None]:
    """Convert errors of copying to `InputError`."""
    try:
        yield
    except shutil.Error as error:
        origin, _, reason = error.args[0][0]
        raise InputError(f"{origin}: {reason}") from None
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror}") from None


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder, and check the digests of its files.

    Raises:
        InputError: the folder is no reranker, or a file is missing or has changed.
    """
    if not (folder / MANIFEST).exists():
        raise InputError(f"{folder}: not the folder of a reranker, it has no {MANIFEST}")
    path = folder / MANIFEST
    values = read_json(path)
    version = values.get("format") if isinstance(values, dict) else None
    if version not in range(1, FORMAT + 1):
        raise InputError(f"{path}: format {version!r}, this version reads formats 1 to {FORMAT}")
    manifest = record_of(values, Manifest, path)
    _check_shortlist(path, manifest)
    with at(f"{path}: "):
        InputFilters(manifest.input_filter)
    for name, content in manifest.files.items():
        _check_inside(path, name)
        if not os.path.isfile(folder / name):
            raise InputError(f"{folder / name}: missing. The folder of a reranker is not complete without it")
        if digest(folder / name) != content:
            raise InputError(f"{folder / name}: changed since the reranker was made")
    if WEIGHTS not in manifest.files:
        raise InputError(f"{path}: {WEIGHTS} is not among its files")
    return manifest


def _check_shortlist(path: Path, manifest: Manifest) -> None:
    """Raise `InputError` if the shortlist has no size, unknown features or no weights."""
    shortlist = manifest.shortlist
    if shortlist is None:
        return
    if shortlist.size < 1 or not set(shortlist.features) <= set(manifest.features):
        raise InputError(f"{path}: shortlist: expected a size of at least 1, and labels of features")
    if SHORTLIST_WEIGHTS not in manifest.files:
        raise InputError(f"{path}: shortlist: {SHORTLIST_WEIGHTS} is not among its files")


def read_features(
    folder: Path, manifest: Manifest, others: Mapping[str, str], allow_code: bool
) -> list[FeatureRequest]:
    """Return the features of a reranker, with paths inside its folder.

    Args:
        folder: the folder of the reranker.
        manifest: its manifest.
        others: `KIND[:ARG]` by label. These features replace features of the reranker, such as scores of a new list.
        allow_code: whether features may run code of users.

    Raises:
        InputError: a label of `others` that the reranker does not have, a feature that runs code without permission, a
            feature with a file that is not in the manifest, a command whose folder does not exist, or a feature of
            scores whose file is not in `others`.
    """
    for label in others:
        if label not in manifest.features:
            raise InputError(f"the reranker has no feature {label!r}. It has {', '.join(manifest.features)}")
    requests = []
    for label, text in manifest.features.items():
        if label in others:
            requests += labelled_requests({label: others[label]})
            continue
        row = row_of(text)
        if runs_code(text) and not allow_code:
            raise InputError(f"feature {label!r} of the reranker, {text!r}, runs code. --allow-code permits it")
        if row and row.one_list:
            raise InputError(
                f"feature {label!r}: scores of another tool. Name their file by --feature {label}=scores:FILE"
            )
        if row and row.takes == "shell" and manifest.code and not os.path.isdir(manifest.code):
            replacement = f"--feature {shown(f'{label}={text}')}, which runs in the working folder"
            raise InputError(
                f"feature {label!r}: no folder {manifest.code}, in which its program ran. Give {replacement}"
            )
        (request,) = labelled_requests({label: text}, manifest.code)
        if request.row.takes in _SUBFOLDERS:
            for part in request.parts:
                _check_part(folder, manifest, part)
            request = request.with_parts([str(folder / part) for part in request.parts])
        requests.append(request)
    return requests


def read_candidates(folder: Path, manifest: Manifest) -> tuple[CandidateRequest, ...]:
    """Return the models of a reranker that add candidates, with paths inside its folder.

    Raises:
        InputError: an entry that is not `SIZE:FOLDER,…`, or a folder that is not in the manifest.
    """
    requests = []
    for name, text in manifest.candidates.items():
        size, _, models = text.partition(":")
        with at(f"{folder / MANIFEST}: {shown(name)}: "):
            check_candidates(whole(size), name)
        folders = (models,) if is_pretrained(models) else tuple(models.split(","))
        request = CandidateRequest(name, folders, int(size))
        for path in request.paths:
            _check_part(folder, manifest, path)
        requests.append(request.moved(lambda path: str(folder / path)))
    with at(f"{folder / MANIFEST}: "):
        check_names({f"candidates.{each.name}": each.name for each in requests}, manifest.features)
    return tuple(requests)


class _Subfolders:
    """Subfolders of a reranker. Each file or folder is copied or linked once."""

    def __init__(self, folder: Path, link: bool) -> None:
        self._folder, self._link = folder, link
        self._paths: dict[tuple[Path, tuple[str, ...]], str] = {}

    def add(self, subfolder: str, part: str, name_parts: tuple[str, ...] = (), link: bool = False) -> str:
        """Copy or link a file or folder into a subfolder, at most once, and return its path relative to the reranker.

        With `link`, it is linked even if the others are copied.

        `name_parts` are substrings by which a feature recognizes a file, such as `f2e`. A file with such substrings is
        named after its file name alone, because the name of a parent folder could contain another one. If links give
        one file several names with different substrings, it is copied once for each.
        """
        origin = Path(part).resolve()
        key = (origin, name_parts)
        if key not in self._paths:
            name = _shortened(os.path.basename(part), name_parts) if name_parts else _name(Path(os.path.abspath(part)))
            self._paths[key] = _free(subfolder, name, self._paths.values())
            _copy(origin, self._folder / self._paths[key], self._link or link)
        return self._paths[key]

    def add_pretrained(self, part: str) -> str:
        """Copy the folder of a pretrained model, or a file of its options. A large folder is linked instead."""
        if os.path.isfile(part):
            return self.add("tables", part)
        large = sum(path.stat().st_size for path in _visible(Path(part))) > MAX_COPY_BYTES
        if large:
            log.info(f"{part}: more than 1 GB, so the reranker links to it. `cp -rL` makes a complete copy")
        return self.add("models", part, link=large)

    def add_weights(self, subfolder: str, ini: str) -> str:
        """Write the weights of an ini file that includes other files into one file, and return its relative path."""
        path = _free(subfolder, _name(Path(os.path.abspath(ini))), self._paths.values())
        self._paths[Path(ini).resolve(), ()] = path
        (self._folder / path).parent.mkdir(exist_ok=True)
        content = read_weight_file(ini)
        write_weights(str(self._folder / path), content.weights, [], content.untuneable)
        return path


def _add_feature(request: FeatureRequest, subfolders: _Subfolders) -> FeatureRequest:
    """Copy the files of a feature, and return its request with paths relative to the reranker."""
    row = request.row
    if row.one_list:
        return replace(request, argument=row.argument)
    if row.takes not in _SUBFOLDERS:
        return request
    if row.takes == "weights" and len(weight_files(request.argument)) > 1:
        return request.with_parts([subfolders.add_weights(_SUBFOLDERS["weights"], request.argument)])
    if row.takes == "folder":
        return request.with_parts([subfolders.add_pretrained(part) for part in request.parts])
    return request.with_parts(
        [subfolders.add(_SUBFOLDERS[row.takes], part, row.name_parts_of(part)) for part in request.parts]
    )


def _name(origin: Path) -> str:
    """Return a name for a file or folder: its file name, or for a model its path below the folder `models`."""
    parts = origin.parts
    start = len(parts) - parts[::-1].index("models") if "models" in parts[:-1] else len(parts) - 1
    return _shortened("-".join(parts[start:]))


def _shortened(name: str, name_parts: tuple[str, ...] = ()) -> str:
    """Return a name that is short enough for prefixes and suffixes. It keeps the parts that have a meaning."""
    data = os.fsencode(name)
    if len(data) <= MAX_NAME_BYTES:
        return name
    start = data[: MAX_NAME_BYTES // 2].decode(errors="ignore") if not name_parts else ".".join(name_parts)
    return f"{start}-{hashlib.sha256(data).hexdigest()[:12]}"


def _free(subfolder: str, name: str, taken: Collection[str]) -> str:
    """Return an unused path in a subfolder."""
    numbered = itertools.chain([name], (f"{number}-{name}" for number in itertools.count(2)))
    return next(path for each in numbered if (path := f"{subfolder}/{each}") not in taken)


def _copy(origin: Path, path: Path, link: bool) -> None:
    path.parent.mkdir(exist_ok=True)
    if link:
        path.symlink_to(origin, target_is_directory=origin.is_dir())
    elif origin.is_dir():
        shutil.copytree(origin, path, ignore=shutil.ignore_patterns(CHECKPOINT, BASE, *FOLD_WEIGHTS, ".*"))
    else:
        shutil.copyfile(origin, path)


def _files(folder: Path) -> dict[str, str]:
    """Return the digest of each file in the folder, following links.

    The card is left out, so that users can edit it.
    """
    names = {str(path.relative_to(folder)): path for path in _visible(folder)}
    return {name: digest(names[name]) for name in sorted(names) if name != CARD}


def _visible(folder: Path) -> Iterator[Path]:
    """Yield all files in a folder and its subfolders, following links, except hidden ones, which are not copied."""
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent, name) for name in names if not name.startswith("."))


def _check_part(folder: Path, manifest: Manifest, name: str) -> None:
    """Raise `InputError` if a path is outside the folder, or not covered by the digests of the manifest."""
    _check_inside(folder / MANIFEST, name)
    if not any(name in (str(path), *map(str, path.parents)) for path in map(PurePosixPath, manifest.files)):
        raise InputError(f"{folder / MANIFEST}: {shown(name)} is not among its files")


def _check_inside(path: Path, name: str) -> None:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\0" in name:
        raise InputError(f"{path}: {name!r} is not a path inside the folder")
