"""Static files over TLS: what of test_static_life.py depends on the
socket."""

import pytest

import proxy as px
import secure
from test_static_life import (  # noqa: F401
    make_site,
    site,
    slow_site,
    test_a_file_cut_short_ends_the_connection,
    test_a_large_file_outlives_an_opener,
    test_a_thousand_ranges_are_the_whole,
    test_an_upgrade_cuts_no_file,
    test_cold_files_stall_nobody_else,
    test_head_says_what_get_says,
    test_http10,
    test_many_files_at_once,
    test_many_requests_on_one_connection,
    test_precompressed_siblings,
)


@pytest.fixture(scope="module", autouse=True)
def over_tls():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(px, "Proxy", secure.SecureProxy)
        yield
