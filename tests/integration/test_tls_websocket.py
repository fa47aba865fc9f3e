"""WebSockets over TLS: what of test_websocket.py depends on the socket."""

import pytest

import proxy as px
import secure
from test_websocket import (  # noqa: F401
    echo_behind,
    make_proxy,
    proxy,
    test_a_half_closed_tunnel_has_a_limit,
    test_a_page_in_a_browser,
    test_a_reset_is_passed_on,
    test_a_slow_reader_slows_the_writer,
    test_an_idle_tunnel_takes_little,
    test_an_upgrade_cuts_no_tunnel_before_the_deadline,
    test_both_directions_at_once,
    test_early_bytes_of_both_sides_are_kept,
    test_fragments_and_control_frames_pass,
    test_G7_a_refused_upgrade_stays_http,
    test_G14_half_closed,
    test_texts_come_back,
    test_what_the_node_is_asked,
    tunnels,
)


@pytest.fixture(scope="module", autouse=True)
def over_tls():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(px, "Proxy", secure.SecureProxy)
        yield
