"""scikit-learn's own checks of an estimator's manners."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from anyorder.estimator import AnyOrder

# Checks that cannot apply, and why.
EXCEPTIONS = {
    "check_do_not_raise_errors_in_init_or_set_params": "in the tests, types are checked at run time, also those of __init__",
    "check_methods_subset_invariance": "networks compute in float32: another batch size changes the last digits, by about 1e-6",
    "check_sample_weight_equivalence_on_dense_data": "weights equal repeated rows in law, not in every number: batches are drawn",
}


class Checked(AnyOrder):
    """The checks call every method with X alone; predict_proba needs the name of a category, so they must not see it."""

    @property
    def predict_proba(self):
        raise AttributeError("predict_proba")


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([Checked(effort=0.002)], expected_failed_checks=lambda estimator: EXCEPTIONS)
def test_manners(estimator, check):
    check(estimator)
