"""Apache prefork of ten processes behind the proxy, and three hundred clients
that read or write a kilobyte a second: it does not notice them."""

import re
import threading

import pytest

import muster
import proxy as px
from slow import Slow, SlowCrowd
from webservers import Apache

STATUS = """
ExtendedStatus On
<Location /server-status>
    SetHandler server-status
</Location>
"""
N_SLOW = 300
GET = b"GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@pytest.fixture
def proxy(tmp_path):
    p = px.Proxy(tmp_path, role=("--maxconn", "10"),
                 origin=lambda a: Apache(a, workers=10, more=STATUS))
    docs = p.origin.docs
    (docs / "small").write_bytes(b"small")
    (docs / "large").write_bytes(b"0123456789abcdef" * (1 << 16))
    yield p
    wrong = p.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def busy(proxy):
    """Apache's processes at work, without the one that says so."""
    page, _ = proxy.talk(GET % b"/server-status?auto")
    board = re.search(rb"Scoreboard: (\S+)", page)[1]
    assert len(board) - board.count(b".") <= 10
    return sum(board.count(c) for c in (b"R", b"W", b"C", b"L", b"G")) - 1


class Quick(threading.Thread):
    """One that asks again and again; `wrong` should stay empty."""

    def __init__(self, proxy):
        super().__init__(daemon=True)
        self.proxy, self.done, self.wrong = proxy, 0, []
        self.ending = threading.Event()
        self.start()

    def run(self):
        post = (b"POST /cgi/echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                b"Content-Length: 5\r\n\r\nhello")
        while not self.ending.is_set():
            for request in (GET % b"/small", post):
                got, how = self.proxy.talk(request)
                if px.statuses(got) != [200] or how != "fin":
                    self.wrong.append((how, got[:100]))
                self.done += 1


def test_ten_processes_and_three_hundred_slow_clients(proxy):
    quick = [Quick(proxy) for _ in range(3)]
    crowd = SlowCrowd(
        [Slow(proxy.address, proxy.PORT, "a", "/large")
         if i % 2 else
         Slow(proxy.address, proxy.PORT, "a", "/cgi/echo",
              size=4000 if i % 8 == 0 else 400000)
         for i in range(N_SLOW)])
    try:
        def delivering():
            row, = proxy.ctl("--json", "show_workers").json_lines
            return (row["delivering"], row["collecting"])
        muster.wait_for(lambda: delivering()[0] == N_SLOW // 2
                        and delivering()[1] >= N_SLOW // 4,
                        what="all slow ones to be under way")
        # Those whose body was short have their answer meanwhile.
        muster.wait_for(lambda: sum(c.done and c.status == 200
                                    for c in crowd.clients) >= N_SLOW // 8,
                        what="slow uploads to be answered")
        start = [q.done for q in quick]
        muster.wait_for(lambda: all(q.done >= n + 20
                                    for q, n in zip(quick, start)),
                        what="quick clients to be served meanwhile")
        for q in quick:
            q.ending.set()
            q.join(muster.PATIENCE_S)
        muster.wait_for(lambda: busy(proxy) == 0, what="an idle Apache")
        assert delivering()[0] == N_SLOW // 2
        assert [q.wrong for q in quick] == [[], [], []]
        assert crowd.failures == [] and crowd.refused == []
    finally:
        for q in quick:
            q.ending.set()
        crowd.end()
