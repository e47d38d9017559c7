"""Functions as endpoints: what a request says, checked against the annotations of the function that answers it."""

import json
import math
from collections.abc import Callable, Mapping
from inspect import Parameter, getdoc, signature
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin

from ..errors import InputError
from . import asking, grid, learning, packing, painting

Document = dict[str, Any]
KINDS: dict[type, tuple[str, Document]] = {
    str: ("a text", {"type": "string"}),
    int: ("a whole number", {"type": "integer"}),
    float: ("a number", {"type": "number"}),
    bool: ("true or false", {"type": "boolean"}),
    dict: ("an object", {"type": "object"}),
    list: ("a list of texts", {"type": "array", "items": {"type": "string"}}),
}
LARGEST = 2**53  # whole numbers that every reader of JSON knows


class Endpoint(NamedTuple):
    """A function, and where it is asked. `thinks`: it asks a model, and such questions wait for each other."""

    path: str
    function: Callable[..., Any]
    thinks: bool = False


VIEWS = ("/", "/open", "/ask", "/table", "/next", "/paint", "/compress", "/api")  # pages; most have a twin below
LOOKING = [
    Endpoint("/open.json", learning.overview),
    Endpoint("/data.json", learning.data_info),
    Endpoint("/pictures.json", learning.pictures),
    Endpoint("/model.json", asking.model_info),
    Endpoint("/ask.json", asking.ask, thinks=True),
    Endpoint("/moved.json", asking.moved, thinks=True),
    Endpoint("/probability.json", asking.probability, thinks=True),
    Endpoint("/next.json", asking.next_question, thinks=True),
    Endpoint("/table.json", grid.grid_rows),
    Endpoint("/cell.json", grid.cell, thinks=True),
    Endpoint("/paint.json", painting.canvas),
    Endpoint("/job.json", learning.job_info),
]
DOING = [
    Endpoint("/do/sample", learning.open_sample),
    Endpoint("/do/open", learning.open_model),
    Endpoint("/do/close", learning.close),
    Endpoint("/do/train", learning.train),
    Endpoint("/do/cancel", learning.cancel),
    Endpoint("/do/finish", learning.finish),
    Endpoint("/do/cell", grid.set_cell),
    Endpoint("/do/draw", grid.draw_cell, thinks=True),
    Endpoint("/do/restore", grid.restore),
    Endpoint("/do/fill", grid.fill_all),
    Endpoint("/do/surprises", grid.surprises),
    Endpoint("/do/paint", painting.paint),
    Endpoint("/do/pictures", painting.new_pictures),
    Endpoint("/do/likelihood", painting.likelihood),
    Endpoint("/do/compress", packing.pack),
]
FILES = [Endpoint("/export.csv", grid.export), Endpoint("/archive.aoz", packing.archive_of)]


def arguments(function: Callable[..., Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function, after its workspace, from what a request says."""
    parameters = own_parameters(function)
    for name in said:
        if name not in parameters:
            raise InputError(f"There is no parameter {name!r:.40}; expected {', '.join(parameters) or 'none'}.")
    missing = [name for name, one in parameters.items() if one.default is Parameter.empty and name not in said]
    if missing:
        raise InputError(f"The parameter {missing[0]!r} is missing; expected {', '.join(parameters)}.")
    return {name: argument(name, parameters[name].annotation, value) for name, value in said.items()}


def own_parameters(function: Callable[..., Any]) -> dict[str, Parameter]:
    return {name: one for name, one in signature(function).parameters.items() if name != "space"}


def kind_of(annotation: Any) -> tuple[type | None, bool]:
    """The type of an argument, None for any; and whether it may be null."""
    if get_origin(annotation) is UnionType:
        (only,) = (one for one in get_args(annotation) if one is not NoneType)
        return kind_of(only)[0], True
    return (None, True) if annotation is Any else (get_origin(annotation) or annotation, False)


def argument(name: str, annotation: Any, value: Any) -> Any:
    """A value of the annotated type; in an address all but texts are written as JSON."""
    kind, optional = kind_of(annotation)
    if kind is None or (optional and value is None):
        return value
    if kind is list and isinstance(value, str):
        return [value]
    if kind is not str and isinstance(value, str):
        value = json_in(value, name)
    if kind is float and type(value) is int:
        value = float(value) if abs(value) < LARGEST else value
    texts = all(isinstance(one, str) for one in value) if isinstance(value, list) else True
    fine = type(value) is kind and texts
    if not fine or (kind is float and not math.isfinite(value)) or (kind is int and abs(value) > LARGEST):
        raise InputError(f"Got {name}={value!r:.60}; expected {KINDS[kind][0]}.")
    return value


def json_in(text: str | bytes, name: str) -> Any:
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        raise InputError(f"{name} cannot be read as JSON.") from None


def refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def description() -> Document:
    """All endpoints in the form of OpenAPI."""
    paths: Document = {}
    for one in LOOKING + FILES:
        query = [
            {"name": name, "in": "query", "required": p.default is Parameter.empty, **content(p)}
            for name, p in own_parameters(one.function).items()
        ]
        paths[one.path] = {"get": operation(one) | {"parameters": query}}
    for one in DOING:
        parameters = own_parameters(one.function)
        body = {
            "type": "object",
            "properties": {name: schema(p) for name, p in parameters.items()},
            "required": [name for name, p in parameters.items() if p.default is Parameter.empty],
        }
        token = {"name": "X-Studio-Token", "in": "header", "required": True, "schema": {"type": "string"}}
        request = {"content": {"application/json": {"schema": body}}}
        paths[one.path] = {"post": operation(one) | {"parameters": [token], "requestBody": request}}
    from .. import __version__

    return {"openapi": "3.1.0", "info": {"title": "anyorder studio", "version": __version__}, "paths": paths}


def operation(one: Endpoint) -> Document:
    answers = {"200": {"description": "the answer"}, "400": {"description": '{"error": what is wrong, and what to do}'}}
    return {"summary": (getdoc(one.function) or "").split("\n")[0], "responses": answers}


def content(p: Parameter) -> Document:
    """A parameter of an address: objects are written as JSON."""
    kind, _ = kind_of(p.annotation)
    return {"content": {"application/json": {"schema": schema(p)}}} if kind is dict else {"schema": schema(p)}


def schema(p: Parameter) -> Document:
    kind, _ = kind_of(p.annotation)
    default = {} if p.default in (Parameter.empty, None) else {"default": p.default}
    return ({} if kind is None else KINDS[kind][1]) | default
