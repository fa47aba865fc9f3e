"""All of test_compress.py once more, by clients that speak TLS."""

import pytest

import proxy as px
import secure
from test_compress import *  # noqa: F401, F403


@pytest.fixture(scope="module", autouse=True)
def over_tls():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(px, "Proxy", secure.SecureProxy)
        yield
