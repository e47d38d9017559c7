"""What a file says about the model in it, and the model built again from that."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..distributions import head_from_json
from ..errors import AnyOrderError, FormatError
from ..models.any_order import AnyOrderModel, check_heads
from ..models.blend import Blend, Member
from ..models.counts import Counted
from ..models.memory import Memory
from ..models.pair_counts import PairCounted
from ..models.row_index import MOST_BINS
from ..models.trained import Trained
from ..models.trees import Boosted, Grown, Trees
from ..networks import NETWORKS
from ..schema import Schema

# What reading nonsense may raise, from JSON, from our own classes and from torch.
BAD_CONTENT = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError, RuntimeError)
MOST_WEIGHT = 1e6  # training starts near 1 and goes in steps of some thousandths
Shapes = dict[str, tuple[int, ...]]
WHY_REFUSED = "The file is damaged, or of another version of anyorder: fit the model again and save it."


def describe(model: Trained) -> dict[str, Any]:
    """What is needed to build the model again, without its tensors."""
    schema = model.schema.to_json()
    if isinstance(model, Counted):
        return {**describe(model.model), "counted": {"rows": len(model.rows)}}
    if isinstance(model, PairCounted):
        return {**describe(model.model), "pairs": {"bins": sum(model.index.bins), "cuts": model.cuts.shape[1]}}
    if isinstance(model, Blend):
        return {"schema": schema, "blend": [describe(member) for member in model.members()]}
    if isinstance(model, Memory):
        return {"schema": schema, "memory": {"rows": len(model.rows)}}
    if isinstance(model, Boosted):
        shapes_of = {kind: list(trees.feature.shape) for kind, trees in model.trees._asdict().items()}
        return {"schema": schema, "boosted": {**shapes_of, "levels": model.frequency.shape[1]}}
    network = {"kind": model.network.kind, **model.network.sizes}
    return {"schema": schema, "heads": [head.to_json() for head in model.heads], "network": network}


def rebuild(path: Path, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> Trained:
    """The described model with these tensors, if it answers; nothing large is allocated before the sizes are known to agree."""
    model = built(path, about, tensors)
    check_answers(path, model)
    return model


def check_answers(path: Path, model: Trained) -> None:
    """Refuse numbers that no training leads to, and a model that knows no probabilities, before anybody asks it."""
    for name, weights in model.named_parameters():
        largest = float(weights.detach().abs().max()) if weights.numel() else 0.0
        if largest > MOST_WEIGHT:
            raise FormatError(
                f"{path.name} is damaged: {name!r} holds a weight of {largest:.0e}, which no training leads to. "
                "Restore it from a copy or fit the model again."
            )
    x, given = torch.zeros(2, len(model.schema)), torch.tensor([[False], [True]]).expand(2, len(model.schema))
    try:
        with torch.no_grad():
            sane = not model(x, given).log_prob(x).isnan().any()
    except (*BAD_CONTENT, AnyOrderError):
        sane = False
    if not sane:
        raise FormatError(
            f"{path.name} is damaged: the model in it answers with no probabilities. Restore it from a copy or fit it again."
        )


def built(path: Path, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> Trained:
    if "counted" in about:
        return rebuild_counted(path, about, tensors)
    if "pairs" in about:
        return rebuild_pairs(path, about, tensors)
    return rebuild_blend(path, about, tensors) if "blend" in about else rebuild_one(path, about, tensors)


def rebuild_counted(path: Path, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> Counted:
    blend = rebuild_blend(path, about, {n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")})
    own = {name: tensor for name, tensor in tensors.items() if not name.startswith("model.")}
    try:
        rows, width = int(about["counted"]["rows"]), len(blend.schema)
        check_same(path, {"rows": (rows, width), "held": (rows, width), "worth": (width,), "place": (rows,)}, shapes(own))
        memory = max((len(member.rows) for member in blend.members() if isinstance(member, Memory)), default=0)
        if not ((own["worth"] > 0).all() and ((own["place"] >= -1) & (own["place"] < max(1, memory))).all()):
            raise ValueError("a weight that is not positive, or a place that is not in the memory")
        counted = Counted(blend, own["rows"], own["held"].bool(), own["place"].long())
        counted.worth.copy_(own["worth"])
    except FormatError:
        raise
    except (*BAD_CONTENT, AnyOrderError) as error:
        raise FormatError(f"{path.name} describes no rows this version can count ({error}). {WHY_REFUSED}") from error
    return counted.eval()


def rebuild_pairs(path: Path, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> PairCounted:
    blend = rebuild_blend(path, about, {n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")})
    own = {name: tensor for name, tensor in tensors.items() if not name.startswith("model.")}
    try:
        bins, cuts, width = int(about["pairs"]["bins"]), int(about["pairs"]["cuts"]), len(blend.schema)
        wanted: Shapes = {"seen": (bins + 1, bins), "expected": (bins + 1, bins), "worth": (width,)}
        check_same(path, wanted | {"cuts": (width, cuts), "cut_count": (width,)}, shapes(own))
        count = own["cut_count"]
        if not ((own["worth"] > 0).all() and (own["seen"] >= 0).all() and ((count >= 0) & (count <= cuts)).all()):
            raise ValueError("counts below zero, or weights or edges that cannot be")
        pairs = PairCounted(blend, **own)
    except FormatError:
        raise
    except (*BAD_CONTENT, AnyOrderError) as error:
        raise FormatError(f"{path.name} describes no counts this version can read ({error}). {WHY_REFUSED}") from error
    return pairs.eval()


def rebuild_blend(path: Path, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> Blend:
    members = about.get("blend")
    if not isinstance(members, list) or not 1 <= len(members) <= 64 or not all(isinstance(m, dict) for m in members):
        raise FormatError(f"{path.name} describes a blend of {members!r:.60}; expected a list of models. {WHY_REFUSED}")
    shares = [
        {n.removeprefix(f"models.{k}."): t for n, t in tensors.items() if n.startswith(f"models.{k}.")}
        for k in range(len(members))
    ]
    models = [rebuild_one(path, member, share) for member, share in zip(members, shares, strict=True)]
    own = {name: t for name, t in tensors.items() if not name.startswith("models.")}
    width = len(models[0].schema)
    wanted = {
        "weight": (len(models), width, 5),
        "temperature": (width,),
        "least": (len(models), width),
        "share": (width, MOST_BINS),
    }
    check_same(path, wanted, shapes(own))
    if len(tensors) != len(own) + sum(map(len, shares)):
        raise FormatError(f"{path.name} contradicts itself: it holds tensors of no model of its blend. Save the model again.")
    try:
        blend = Blend(models)
    except AnyOrderError as error:
        raise FormatError(f"{path.name} contradicts itself: {error}") from error
    blend.load_state_dict(tensors)
    return blend.eval()


def rebuild_one(path: Path, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> Member:
    if "memory" in about:
        return rebuild_memory(path, about, tensors)
    return rebuild_boosted(path, about, tensors) if "boosted" in about else rebuild_network(path, about, tensors)


def rebuild_memory(path: Path, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> Memory:
    try:
        schema = Schema.from_json(about["schema"])
        rows, held = tensors["rows"], tensors["held"]
        check_same(
            path,
            dict.fromkeys(("rows", "held"), (int(about["memory"]["rows"]), len(schema))),
            shapes({"rows": rows, "held": held}),
        )
        memory = Memory(schema, rows, held.bool())
        check_same(path, shapes(memory.state_dict()), shapes(tensors))
        memory.load_state_dict(tensors)
        if not (memory.copies > 0).all():
            raise ValueError("a row that counts less than nothing")
    except FormatError:
        raise
    except (*BAD_CONTENT, AnyOrderError) as error:
        raise FormatError(f"{path.name} describes no memory this version can build ({error}). {WHY_REFUSED}") from error
    return memory.eval()


def rebuild_boosted(path: Path, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> Boosted:
    try:
        schema = Schema.from_json(about["schema"])
        wanted: Shapes = {"frequency": (len(schema), about["boosted"]["levels"])}
        for kind in Grown._fields:
            sets, trees, nodes = about["boosted"][kind]
            sizes = {"feature": (nodes,), "threshold": (nodes,), "value": (nodes + 1,), "base": ()}
            wanted |= {f"{kind}_{name}": (sets, *((trees, *size) if size else ())) for name, size in sizes.items()}
        check_same(path, wanted, shapes({name: tensors[name] for name in wanted}))
        grown = Grown(*(Trees(*(tensors[f"{kind}_{name}"] for name in Trees._fields)) for kind in Grown._fields))
        boosted = Boosted(schema, grown, tensors["frequency"])
        check_same(path, shapes(boosted.state_dict()), shapes(tensors))
        boosted.load_state_dict(tensors)
    except FormatError:
        raise
    except (*BAD_CONTENT, AnyOrderError) as error:
        raise FormatError(f"{path.name} describes no trees this version can build ({error}). {WHY_REFUSED}") from error
    return boosted.eval()


def rebuild_network(path: Path, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> AnyOrderModel:
    try:
        schema = Schema.from_json(about["schema"])
        heads = [head_from_json(item) for item in about["heads"]]
        check_heads(schema, heads)
        sizes = dict(about["network"])
        with torch.device("meta"):
            network = NETWORKS[sizes.pop("kind")](schema, sum(head.width for head in heads), **sizes)
    except BAD_CONTENT as error:
        raise FormatError(f"{path.name} describes no model this version can build ({error}). {WHY_REFUSED}") from error
    wanted = {f"network.{name}": shape for name, shape in shapes(network.state_dict()).items()}
    check_same(path, wanted, shapes(tensors))
    with torch.random.fork_rng(devices=[]):
        network = type(network)(schema, sum(head.width for head in heads), **sizes)
    model = AnyOrderModel(schema, heads, network)
    model.load_state_dict(tensors)
    return model.eval()


def shapes(tensors: Mapping[str, Tensor]) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def check_same(path: Path, wanted: Shapes, found: Shapes) -> None:
    wrong = [name for name in wanted if found.get(name) != wanted[name]] + [name for name in found if name not in wanted]
    if wrong:
        name = wrong[0]
        raise FormatError(
            f"{path.name} contradicts itself: {len(wrong)} tensor(s) do not fit its description, first {name!r}: "
            f"expected shape {wanted.get(name, 'none')}, found {found.get(name, 'none')}. {WHY_REFUSED}"
        )
