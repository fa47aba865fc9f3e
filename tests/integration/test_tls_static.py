"""Static files over TLS: the corpus of test_static.py once more."""

import pytest

import proxy as px
import secure
from test_static import *  # noqa: F401, F403


@pytest.fixture(scope="module", autouse=True)
def over_tls():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(px, "Proxy", secure.SecureProxy)
        yield
