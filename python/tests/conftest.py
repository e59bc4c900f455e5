import numpy as np
import pytest


@pytest.fixture(autouse=True)
def quiet_numpy():
    """Programs run as plain Python in tests: overflow and NaN are part of what is compared."""
    with np.errstate(all="ignore"):
        yield
