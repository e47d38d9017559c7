"""Parts and orders of pictures, against pictures drawn by hand."""

import pytest
import torch

from anyorder.errors import InputError
from anyorder.inference import seeded
from anyorder.modalities.images import regions
from anyorder.subsets import Question


def drawn(*lines: str) -> torch.Tensor:
    return torch.tensor([[c == "#" for c in line] for line in lines])


def seen(region, shape):
    """A region of a picture, whose channels must agree."""
    wide = region.view(shape)
    assert (wide == wide[..., :1]).all()
    return wide[..., 0]


def test_halves():
    shape = (3, 4, 2)
    wanted = {
        "left": drawn("##..", "##..", "##.."),
        "right": drawn("..##", "..##", "..##"),
        "top": drawn("####", "....", "...."),
        "bottom": drawn("....", "####", "####"),
    }
    assert set(wanted) == set(regions.HALVES)
    for name, region in wanted.items():
        assert torch.equal(seen(regions.half(shape, name), shape), region)
    with pytest.raises(InputError, match=r"middle.*left, right, top, bottom"):
        regions.half(shape, "middle")


def test_boxes_are_cut_at_the_border():
    assert torch.equal(seen(regions.box((3, 4, 1), 2, -1, 5, 2), (3, 4, 1)), drawn("..##", "....", "...."))
    assert not regions.box((3, 4, 1), -3, 0, 2, 2).any()


def test_the_interior_is_in_the_middle():
    assert torch.equal(seen(regions.interior((4, 6, 3)), (4, 6, 3)), drawn("......", ".###..", ".###..", "......"))
    assert regions.interior((1, 1, 1)).all()


def test_a_patch_is_a_square_of_its_side_anywhere():
    found = torch.stack([regions.patch((6, 5, 1), 2, seeded(s)) for s in range(200)])
    assert (found.sum(-1) == 4).all()
    assert len(found.unique(dim=0)) == 5 * 4


def test_modes_reveal_their_region_first():
    shape = (4, 4, 1)
    question = Question.joint(torch.ones(50, 16, dtype=torch.bool))
    several = [regions.half(shape, name) for name in regions.HALVES] + [regions.interior(shape), ~regions.interior(shape)]
    uniform, *staged = regions.modes(shape).values()
    assert tuple(regions.modes(shape)) == regions.MODES
    assert uniform.rank(question, seeded()).float().mean(0).std() < 1.5
    for order, region in zip(staged, several, strict=True):
        rank = order.rank(question, seeded())
        assert (rank[:, region] < region.sum()).all()


def test_raster_is_reading_order():
    question = Question.joint(torch.ones(1, 12, dtype=torch.bool))
    assert regions.raster((2, 3, 2)).rank(question, seeded()).tolist() == [list(range(12))]


def test_coarse_to_fine_halves_the_spacing():
    stage = torch.tensor(regions.coarse_to_fine((5, 6, 2), 4).stage).view(5, 6, 2)
    for row in range(5):
        for column in range(6):
            wanted = next(k for k, stride in enumerate((4, 2, 1)) if row % stride == 0 and column % stride == 0)
            assert (stage[row, column] == wanted).all()
    assert set(regions.coarse_to_fine((2, 2, 1), 1).stage) == {0}
    with pytest.raises(InputError, match="power of two"):
        regions.coarse_to_fine((4, 4, 1), 3)
