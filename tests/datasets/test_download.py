"""Downloads, tried against a real server on this machine, arrive whole or not at all."""

import importlib.util
import io
import socket
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from skpll.datasets import fetch_dataset, load_dataset

PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


class Handler(BaseHTTPRequestHandler):
    """Answers in the way that the first part of the path asks for."""

    def do_GET(self):
        self.server.requests.append(self.path)
        getattr(self, self.path.split("/")[1])(self.server.content)

    def good(self, content):
        self._answer(200, content, len(content))

    def compressed(self, content):
        import gzip

        packed = gzip.compress(content)
        self._answer(200, packed, len(packed), {"Content-Encoding": "gzip"})

    def missing(self, _content):
        self._answer(404, PAGE, len(PAGE))

    def broken(self, _content):
        self._answer(500, b"", 0)

    def page(self, _content):
        self._answer(200, PAGE, len(PAGE))

    def empty(self, _content):
        self._answer(200, b"", 0)

    def wrong(self, content):
        self._answer(200, content[:-8] + bytes(8), len(content))

    def short(self, content):
        self._answer(200, content[: len(content) // 2], len(content))

    def unannounced(self, content):
        self._answer(200, content[: len(content) // 2], None)

    def drop(self, content):
        self._answer(200, content[: len(content) // 2], len(content))
        self.wfile.flush()
        linger = struct.pack("ii", 1, 0)  # reset the connection instead of closing it
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()

    def _answer(self, status, body, length, headers=None):
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_args):
        """Keep quiet about connections that the tests break on purpose."""


@pytest.fixture
def server(toy_bytes, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    pytest.importorskip("pooch", reason="downloading needs pooch")
    with Server(("127.0.0.1", 0), Handler) as running:
        running.content = toy_bytes
        running.requests = []
        running.address = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def contents(directory):
    return sorted(path.name for path in directory.rglob("*")) if directory.exists() else []


@pytest.mark.parametrize("kind", ["good", "compressed"])
@pytest.mark.parametrize("hashed", [True, False])
def test_a_download_goes_to_the_cache_once(
    server, register, cache, toy, toy_bytes, sha256, kind, hashed
):
    register(f"{server.address}/{kind}/", sha256=sha256 if hashed else None)
    for _ in range(2):
        path = fetch_dataset("toy")
        assert path == cache / "Toy Set.mat"
        assert path.read_bytes() == toy_bytes
    assert server.requests == [f"/{kind}/Toy%20Set.mat"]
    assert contents(cache) == ["Toy Set.mat"]
    assert load_dataset("toy").y.tolist() == toy.y.tolist()


def test_a_download_goes_to_data_home(server, register, cache, tmp_path, sha256, toy_bytes):
    register(f"{server.address}/good/", sha256=sha256)
    home = tmp_path / "a" / "b"
    assert fetch_dataset("toy", data_home=home) == home / "Toy Set.mat"
    assert contents(home) == ["Toy Set.mat"]
    assert (home / "Toy Set.mat").read_bytes() == toy_bytes
    assert contents(cache) == []


@pytest.mark.parametrize("hashed", [True, False])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", "404"),
        ("broken", "500"),
        ("page", r"Toy Set\.mat is a web page \(HTML\)"),
        ("empty", r"Toy Set\.mat is empty"),
        ("wrong", "SHA256|readable MATLAB file|no candidate label"),
        ("short", "IncompleteRead|no connection|SHA256|readable MATLAB file"),
        ("unannounced", "SHA256|readable MATLAB file"),
        ("drop", "reset|Connection broken|no connection"),
    ],
)
def test_nothing_bad_remains(server, register, cache, tmp_path, sha256, kind, message, hashed):
    register(f"{server.address}/{kind}/", sha256=sha256 if hashed else None)
    for home in (None, tmp_path / "home"):
        with pytest.raises(FileNotFoundError, match=f"the download failed: .*({message})") as info:
            load_dataset("toy", data_home=home)
        assert f"Get it from {server.address}/{kind}/Toy%20Set.mat" in str(info.value)
        assert f"put it into {home or cache}" in str(info.value)
        assert "\n" not in str(info.value)
        assert contents(home or cache) == []


def test_without_a_hash_a_set_of_another_shape_is_refused(server, register, cache):
    register(f"{server.address}/good/", n_samples=17472)
    with pytest.raises(FileNotFoundError, match=r"holds 12 × 4 features.*17472"):
        fetch_dataset("toy")
    assert contents(cache) == []


def test_a_damaged_file_in_the_cache_is_replaced(server, register, cache, sha256, toy_bytes):
    register(f"{server.address}/good/", sha256=sha256)
    cache.mkdir()
    (cache / "Toy Set.mat").write_bytes(toy_bytes[:100])
    assert fetch_dataset("toy").read_bytes() == toy_bytes


def test_a_damaged_file_in_the_cache_goes_even_when_offline(register, cache, sha256):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/"
    register(address, sha256=sha256)
    cache.mkdir()
    (cache / "Toy Set.mat").write_bytes(b"MATLAB 5.0")
    with pytest.raises(FileNotFoundError, match=r"there is no connection to 127\.0\.0\.1"):
        fetch_dataset("toy")
    assert contents(cache) == []


def test_without_an_address(register, cache):
    register(None)
    with pytest.raises(FileNotFoundError, match=r"no address is registered.*Put it into") as info:
        fetch_dataset("toy")
    assert str(cache) in str(info.value)
    assert "SKPLL_DATA" in str(info.value)


def test_without_pooch(register, monkeypatch):
    register("http://127.0.0.1:9/")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pooch" else find(name)
    )
    with pytest.raises(FileNotFoundError, match=r"pip install 'skpll\[data\]'.*Get it from"):
        fetch_dataset("toy")


def test_a_place_that_cannot_be_written(server, register, tmp_path, sha256):
    register(f"{server.address}/good/", sha256=sha256)
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match="the download failed"):
        fetch_dataset("toy", data_home=tmp_path / "file" / "below")


@pytest.mark.parametrize("terminal", [True, False])
def test_the_progress_bar_is_for_terminals(server, register, sha256, monkeypatch, terminal):
    pytest.importorskip("tqdm", reason="the progress bar needs tqdm")
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stream)
    register(f"{server.address}/good/", sha256=sha256)
    fetch_dataset("toy")
    assert ("100%" in stream.getvalue()) == terminal
