import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("anyorder", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("anyorder")

LONGEST = ("test_strange_tables", "test_any_table", "test_settings", "test_readme", "test_scikit_learn")


def pytest_collection_modifyitems(items):
    """The longest first, so that no worker ends long after the others."""
    items.sort(key=lambda item: not any(name in item.nodeid for name in LONGEST))
