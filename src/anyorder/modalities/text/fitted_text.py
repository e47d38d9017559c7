"""One model of text: restore what is missing of it, find what does not fit, score it, draw it."""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from ...errors import InputError
from ...inference import mixture_log_prob, sample, seeded
from ...models.text_automaton import ROOT
from ...models.text_lattice import Lattice
from ...models.text_memory import TextMemory
from ...subsets import CanonicalOrder, OneByOne, Order, Quadratic, Question, RandomOrder, Schedule
from ...training import Check
from ...validation import check_positive, whole_number
from ..base import Document, Fitted, chosen_schedule
from .alphabet import END, FIRST, OTHER, Alphabet, Codes, named
from .corpus import texts_of
from .text_answers import Alternative, Gap, Restored, TextAnomalies, by_frequency, runs

FILLINGS_DRAWN = 200  # joint draws of which the alternatives of longer gaps are counted
MOST_ALTERNATIVES = 10
LONGEST_DRAWN = 1000  # characters of a document that is drawn without a length
PASSAGE = 250  # characters that are drawn where documents have no usual length
FOREIGN_SHARE = 0.3  # of characters never seen, from which a text is not of the model's language


@final
@dataclass
class FittedText(Fitted):
    """A memory of text, and how characters are written as codes."""

    alphabet: Alphabet
    model: TextMemory
    documents: int  # that it learned from
    characters: int
    history: list[Check] = field(default_factory=list)

    what = "text"

    def about(self) -> Document:
        return {"text": {**self.alphabet.to_json(), "documents": self.documents, "read": self.characters}}

    def describe(self) -> Document:
        return {"what": self._says(), "keeps_rows": 0}

    def _says(self) -> str:
        known = f"{len(self.alphabet.characters)} characters with a code of their own: {named(self.alphabet.characters)}"
        return (
            f"text of {self.characters:,} characters in {self.documents:,} document(s), {known}; "
            f"{len(self.model.forwards):,} contexts of up to {self.model.forwards.order} characters"
        )

    def outline(self) -> list[str]:
        return [f"a model of {self._says()}"]

    @property
    def encoder(self) -> Alphabet:
        """How characters become codes."""
        return self.alphabet

    # Verbs

    def restore(
        self,
        texts: Any,
        draws: int = 0,
        *,
        missing: Any = None,
        gap: str = "_",
        alternatives: int = 5,
        seed: int = 0,
    ) -> Any:
        """The likeliest filling of the gaps of every text, alternatives with probabilities, and `draws` fillings drawn together.

        Parameters
        ----------
        texts: one, or a list; a gap has as many characters as there are marks.
        draws: how many fillings of all gaps are drawn.
        missing: instead of marks, for every text an array with True where a character is missing.
        gap: the mark of a missing character.
        alternatives: how many are listed for every gap.

        Returns
        -------
        A `Restored`, or a list of them for a list of texts.
        """
        draws, alternatives = whole_number("draws", draws, 0), whole_number("alternatives", alternatives, 1)
        found, rng = [], np.random.default_rng(seed)
        whole = texts_of(texts)
        for text, gone in zip(whole, self._missing(whole, missing, gap), strict=True):
            if not gone.any():
                raise InputError(f"The text {shown(text)} has no gap. Write {gap!r} for every missing character.")
            found.append(self._restored(text, gone, draws, alternatives, rng))
        return found[0] if isinstance(texts, str) else found

    def score_samples(
        self,
        texts: Any,
        target: Any = None,
        *,
        order: Order | None = None,
        steps: int | None = None,
        schedule: Schedule | None = None,
    ) -> NDArray[np.float64]:
        """The log-probability of every text, or of the characters that `target` marks given all others, in nats.

        A text is a passage of whose surroundings nothing is known. `target` has an array of booleans for every text, True for
        what is scored. Without `order`, `steps` and `schedule` the score is that of the forward reading in one pass, the same
        for every order; with them it is that of a walk, as for tables.
        """
        whole = texts_of(texts)
        asked = [np.ones(len(text), bool) for text in whole] if target is None else masks("target", target, whole)
        walks = order is not None or steps is not None or schedule is not None
        scores = np.zeros(len(whole))
        for i, (text, mask) in enumerate(zip(whole, asked, strict=True)):
            codes = self._codes(text)
            scores[i] = self.alphabet.log_others(text, codes)[mask].sum()
            if not mask.any():
                continue
            if walks:
                cut = chosen_schedule(steps, schedule, Quadratic)
                model, x = self.model.resized(len(codes)), torch.from_numpy(codes).float()[None]
                asks = torch.from_numpy(mask)[None]
                scores[i] += float(
                    mixture_log_prob(model, x, Question(~asks, asks), [order or CanonicalOrder()], schedule=cut, rng=seeded(0))[0]
                )
            elif mask.all():
                scores[i] += self.model.log_probs(codes).sum()
            else:
                lattices = self.model.lattices(codes, ~mask)
                scores[i] += sum(one.log_prob(codes[at : at + len(one.stages)]) for at, one in lattices)
        return scores

    def anomalies(self, texts: Any) -> TextAnomalies:
        """How surprising every character is given all others of its text, and which one would be expected there."""
        whole = texts_of(texts)
        nats, expected, likely = [], [], []
        for text in whole:
            codes = self._codes(text)
            table = self.model.one_by_one(codes) if len(codes) else np.zeros((0, self.alphabet.levels))
            own = table[np.arange(len(codes)), codes]
            nats.append(-np.log(np.maximum(own, 1e-300)) - self.alphabet.log_others(text, codes))
            table[:, [END, OTHER]] = 0.0
            best = table.argmax(1)
            expected.append(self.alphabet.decode(best))
            likely.append(table[np.arange(len(codes)), best])
        return TextAnomalies(whole, nats, expected, likely)

    def sample(
        self,
        n: int = 1,
        given: str | None = None,
        *,
        steps: int | None = None,
        schedule: Schedule | None = None,
        order: Order | None = None,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> list[str]:
        """New texts; of `given`, a text with gaps written _, only the gaps are drawn.

        All gaps are drawn together in one pass; `steps`, a `schedule`, an `order` or a `temperature` draw them in a walk, one
        by one or several at once. Without `given`, documents are drawn if the model learned from several, else passages.
        """
        whole_number("n", n, 0)
        check_positive("temperature", temperature)
        walks = steps is not None or schedule is not None or order is not None or temperature != 1.0
        rng, letters = np.random.default_rng(seed), np.arange(FIRST, self.alphabet.levels)
        if given is None and not walks:
            return self._new(n, rng)
        text = "_" * PASSAGE if given is None else given
        if not isinstance(text, str):
            raise InputError(f"Got given={given!r:.60}; expected a text with gaps, such as 'In the beginning ____'.")
        gone = self._missing([text], None, "_")[0]
        if not gone.any():
            raise InputError(f"The text {shown(text)} has no gap to draw. Write '_' for every character to be drawn.")
        codes = self._codes(text, gone)
        if walks:
            cut = chosen_schedule(steps, schedule, Quadratic) if steps or schedule else OneByOne()
            x = torch.from_numpy(codes).float().expand(n, -1)
            known = torch.from_numpy(~gone).expand(n, -1)
            drawn = sample(
                self.model.resized(len(codes), allowed=letters),
                x,
                Question(known, ~known),
                seeded(seed),
                order=order or RandomOrder(),
                schedule=cut,
                temperature=temperature,
            ).numpy()
            return [self._filled(text, gone, one.astype(np.int64)) for one in drawn]
        return [self._filled(text, gone, one) for one in self.model.draws(codes, ~gone, n, rng, letters)]

    # How they are answered

    def _new(self, n: int, rng: np.random.Generator) -> list[str]:
        """Documents from their start to their end, or passages."""
        if self.documents < 2:
            drawn = self.model.continued(np.full(n, ROOT), PASSAGE, rng, np.arange(FIRST, self.alphabet.levels))
            return [self.alphabet.decode(one) for one in drawn]
        start = self.model.forwards.after(np.array([END], np.uint8))
        symbols = np.array([END, *([OTHER] if self.alphabet.rare else []), *range(FIRST, self.alphabet.levels)])
        drawn = self.model.continued(np.full(n, start), LONGEST_DRAWN, rng, symbols)
        return [self.alphabet.decode(one[: int(np.append(np.flatnonzero(one == END), len(one))[0])]) for one in drawn]

    def _restored(self, text: str, gone: NDArray[np.bool_], draws: int, alternatives: int, rng: np.random.Generator) -> Restored:
        codes, letters = self._codes(text, gone), np.arange(FIRST, self.alphabet.levels)
        lattices = self.model.lattices(codes, ~gone, ROOT, letters)
        best, log_p = codes.astype(np.int64), 0.0
        many = self.model.draws(codes, ~gone, max(draws, FILLINGS_DRAWN), rng, letters)
        for start, lattice in lattices:
            place = slice(start, start + len(lattice.stages))
            best[place], own = lattice.best()
            log_p += own
        holes = runs(gone)
        alone = self._alone(codes, gone, lattices, single=any(length == 1 for _, length in holes))
        characters = {int(i): self._alternatives(alone[i], alternatives) for i in np.flatnonzero(gone)}
        fillings = [self._filled(text, gone, one) for one in many]
        gaps = [
            Gap(
                start,
                length,
                characters[start]
                if length == 1
                else by_frequency([one[start : start + length] for one in fillings], alternatives),
            )
            for start, length in holes
        ]
        drawn = tuple(fillings[:draws])
        return Restored(text, self._filled(text, gone, best), math.exp(log_p), tuple(gaps), drawn, characters)

    def _alone(
        self, codes: Codes, gone: NDArray[np.bool_], lattices: list[tuple[int, Lattice]], single: bool
    ) -> NDArray[np.float64]:
        """The distributions of single characters: of both readings if a gap has one character, else of the forward reading."""
        if single:
            return self.model.posteriors(codes, ~gone, ROOT, np.arange(FIRST, self.alphabet.levels))
        out = np.zeros((len(codes), self.alphabet.levels))
        for start, lattice in lattices:
            out[start : start + len(lattice.stages)] = lattice.posteriors(self.alphabet.levels)
        return out

    def _alternatives(self, chances: NDArray[np.float64], most: int) -> tuple[Alternative, ...]:
        order = np.argsort(-chances, kind="stable")[:most]
        return tuple(Alternative(self.alphabet.decode(np.array([code])), float(chances[code])) for code in order)

    def _filled(self, text: str, gone: NDArray[np.bool_], codes: NDArray[np.int64]) -> str:
        """What is not missing stays as it was written."""
        return "".join(self.alphabet.decode(codes[i : i + 1]) if hidden else text[i] for i, hidden in enumerate(gone.tolist()))

    def _codes(self, text: str, gone: NDArray[np.bool_] | None = None) -> Codes:
        """Of a text; a warning if the model hardly knows its characters."""
        codes = self.alphabet.encode(text)
        seen = codes if gone is None else codes[~gone]
        strange = int((seen == OTHER).sum())
        if strange > FOREIGN_SHARE * len(seen):
            warnings.warn(
                f"{strange} of the {len(seen)} known characters of {shown(text)} were rare or never seen in training: answers "
                "rest on little. Fit a model on text of this kind.",
                stacklevel=3,
            )
        return codes

    def _missing(self, texts: Iterable[str], missing: Any, gap: str) -> list[NDArray[np.bool_]]:
        if not isinstance(gap, str) or len(gap) != 1:
            raise InputError(f"Got gap={gap!r}; expected one character.")
        if missing is not None:
            return masks("missing", missing, list(texts))
        return [np.array([one == gap for one in text], bool) for text in texts]


def masks(name: str, given: Any, texts: list[str]) -> list[NDArray[np.bool_]]:
    """One array of booleans for every text, as long as it."""
    found = [given] if len(texts) == 1 and np.ndim(given) == 1 else list(given)
    found = [np.asarray(one) for one in found]
    if [one.shape for one in found] != [(len(text),) for text in texts] or any(one.dtype != bool for one in found):
        raise InputError(
            f"`{name}` has {len(found)} mask(s) of the lengths {[one.size for one in found][:8]}; expected an array of booleans "
            f"for every text, of the lengths {[len(text) for text in texts][:8]}."
        )
    return found


def shown(text: str) -> str:
    """The beginning of a text, for a message."""
    return repr(text if len(text) <= 40 else text[:39] + "…")
