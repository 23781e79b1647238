"""Redirects of HTTP servers to other hosts, which must not get the headers of the user.

aiohttp leaves out ``Authorization`` and cookies; a key in any other header would be sent.
"""

from functools import cache
from typing import Any

from yarl import URL

#: Headers that describe the request alone.
_OF_REQUEST = frozenset(
    {
        *("accept", "accept-encoding", "accept-language", "host", "if-match", "if-none-match"),
        *("range", "user-agent"),
    }
)


def keep_headers(fs: Any) -> None:
    """Have a file system for HTTP send the headers of the user to the host of the URL only."""
    trace = _trace()
    traces = fs.client_kwargs.get("trace_configs") or []
    if trace not in traces:
        # The file system may be in use elsewhere, and its options belong to the user.
        fs.client_kwargs = {**fs.client_kwargs, "trace_configs": [*traces, trace]}
    session = getattr(fs, "_session", None)
    if session is not None and trace not in session.trace_configs:
        session.trace_configs.append(trace)


@cache
def _trace() -> Any:
    import aiohttp

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_drop_headers)
    trace.freeze()
    return trace


async def _drop_headers(_session: Any, _context: Any, params: Any) -> None:
    """Remove the headers of the user before a request to another host is sent."""
    answer, headers = params.response, params.headers
    location = answer.headers.get("Location") or answer.headers.get("URI")
    if location is None or is_same_host(answer.url, answer.url.join(URL(location))):
        return
    for name in [name for name in headers if name.lower() not in _OF_REQUEST]:
        headers.popall(name, None)


def is_same_host(url: URL, other: URL) -> bool:
    """Whether a request to another URL goes to the same server, with no less protection.

    >>> from yarl import URL
    >>> is_same_host(URL("http://a.org/x"), URL("https://a.org/y"))
    True
    >>> is_same_host(URL("https://a.org/x"), URL("http://a.org/y"))
    False
    """
    if url.host != other.host:
        return False
    is_upgrade = (url.scheme, other.scheme) == ("http", "https")
    has_usual_ports = url.is_default_port() and other.is_default_port()
    return url.origin() == other.origin() or (is_upgrade and has_usual_ports)
