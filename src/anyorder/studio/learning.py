"""Opening data and models, looking at what columns are taken for, and training with everybody watching."""

from dataclasses import asdict
from typing import Any

import numpy as np

from ..errors import InputError, UnavailableError
from ..estimator import AnyOrder
from ..modalities.base import named
from ..modalities.tables.preview import PREVIEW_HEIGHTS
from ..training import Check
from ..training.loop import EnoughError
from .asking import model_info
from .jobs import Job
from .samples import SAMPLES
from .wording import command, jsonable
from .workspace import Dataset, Workspace, stem

Document = dict[str, Any]
SETTINGS = ("kinds", "keep_rows", "size", "na")  # that the page may make, where the kind of data has them
NOTHING: dict[str, Any] = {}


def overview(space: Workspace) -> Document:
    """All that is open, what could be opened with one click, and the jobs."""
    from ..io.shipped import names

    return {
        "datasets": [data_line(one) for one in space.datasets.values()],
        "models": [
            {
                "model": one.id,
                "name": one.name,
                "what": one.model.fitted_.what,
                "verbs": one.model.fitted_.verbs(),
                "data": one.data,
            }
            for one in space.models.values()
        ],
        "samples": [{"sample": name, "says": sample.says} for name, sample in SAMPLES.items()],
        "saved": space.saved(),
        "shipped": names(),
        "jobs": [job.document() | {"result": None} for job in space.jobs.all()],
    }


def data_line(found: Dataset) -> Document:
    return {"data": found.id, "name": found.name, "what": found.modality.what, "count": len(found.X)}


def data_info(space: Workspace, data: str, kinds: dict[str, Any] = NOTHING) -> Document:
    """What a table or an array of images holds, and what every column is taken for; `kinds` overrules."""
    found = space.data(data)
    settings = [name for name in SETTINGS if name in named(found.modality.fit)]
    document: Document = {**data_line(found), "counted": found.modality.counted, "settings": settings}
    try:
        looked = found.modality.preview(found.X, **({"kinds": kinds} if kinds else {}))
        document["columns"] = [asdict(one) | {"histogram": heights(one.histogram)} for one in looked.columns]
    except UnavailableError:  # it has no columns
        document["shape"] = list(np.shape(found.X)[1:])
        document["classes"] = sorted(set(map(str, found.y))) if found.y is not None else []
    return document


def heights(histogram: str) -> list[int]:
    """Bars of text as numbers from 0 to 8."""
    return [PREVIEW_HEIGHTS.find(mark) + 1 for mark in histogram]


def open_sample(space: Workspace, sample: str) -> Document:
    """Data that come with the installation."""
    if sample not in SAMPLES:
        raise InputError(f"There is no sample {sample!r:.40}; there are {', '.join(SAMPLES)}.")
    name, modality, X, y = SAMPLES[sample].load()
    return data_info(space, space.add_data(name, modality, X, y).id)


def open_model(space: Workspace, name: str) -> Document:
    """A model that was saved in the folder of the studio, or that comes with the package."""
    return model_info(space, space.load(name).id)


def close(space: Workspace, data: str | None = None, model: str | None = None) -> Document:
    """Close a table, images or a model; what was saved stays in the folder."""
    if data is not None:
        del space.datasets[space.data(data).id]
    if model is not None:
        del space.models[space.model(model).id]
    return overview(space)


def train(
    space: Workspace, data: str, effort: float = 1.0, settings: dict[str, Any] = NOTHING, name: str | None = None
) -> Document:
    """Fit a model, as a job that tells the held-out nats after every check; when it is done the model is saved."""
    found = space.data(data)
    unknown = [one for one in settings if one not in SETTINGS]
    if unknown:
        raise InputError(f"There is no setting {unknown[0]!r:.40}; there are {', '.join(SETTINGS)}.")
    made = {one: value for one, value in settings.items() if value not in (None, {})}
    call = "".join(f", {one}={value!r}" for one, value in made.items())
    python = f"from anyorder import AnyOrder\n\nmodel = AnyOrder(effort={effort!r}{call}).fit(data)"

    def work(job: Job) -> Document:
        checks: list[list[float]] = []

        def progress(check: Check) -> None:
            checks.append([check.step, check.train_nats, check.held_out_nats])
            left = check.seconds / check.step * (check.steps - check.step)
            job.tell(step=check.step, steps=check.steps, best=check.best_nats, seconds=check.seconds, left=left, checks=checks)
            if job.is_enough:
                raise EnoughError

        job.tell(checks=[])
        model = AnyOrder(effort=effort, callback=progress, **made).fit(found.X, found.y)
        job.raise_if_cancelled()
        model.callback = None
        saved = space.save(model, name or stem(found.name))
        kept = space.add_model(saved, model, data)
        return {**model_info(space, kept.id), "python": python, "command": trained_by(found, effort, made)}

    AnyOrder(effort=effort, **made)
    return space.jobs.start(f"Learn {found.name}", work).document()


def trained_by(found: Dataset, effort: float, made: Document) -> str:
    words = ["anyorder", "fit", found.name, "--effort", f"{effort:g}"]
    words += [word for column, kind in made.get("kinds", {}).items() for word in ("--kind", f"{column}={kind}")]
    words += ["--without-rows"] if made.get("keep_rows") is False else []
    return command(*words, *(["--size", made["size"]] if "size" in made else []))


def cancel(space: Workspace, job: str) -> Document:
    """Stop a job, and keep nothing of it."""
    found = space.job(job)
    space.jobs.cancel(found)
    return found.document()


def finish(space: Workspace, job: str) -> Document:
    """Stop training, and keep the best model so far."""
    found = space.job(job)
    space.jobs.finish(found)
    return found.document()


def job_info(space: Workspace, job: str) -> Document:
    """How far a job is, and what came of it."""
    return space.job(job).document()


def pictures(space: Workspace, data: str, start: int = 0, count: int = 24) -> Document:
    """Some of the images of a dataset."""
    from .painting import picture

    found = space.data(data)
    if start < 0 or not 1 <= count <= 100:
        raise InputError(f"Got start={start}, count={count}; expected start from 0 and count from 1 to 100.")
    if hasattr(found.X, "iloc"):
        raise InputError(f"{found.name} is {found.modality.what}, and has no pictures.")
    part, top = np.asarray(found.X[start : start + count]), int(np.max(found.X, initial=1))
    shown = [picture(one) for one in (np.round(part * (255 / top)) if top < 128 else part)]  # few levels from black to white
    labels = [] if found.y is None else [jsonable(None, one) for one in found.y[start : start + count]]
    return {"data": data, "count": len(found.X), "start": start, "pictures": shown, "labels": labels}
