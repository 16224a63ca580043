"""Checks which site a request comes from: other sites' pages must not use a server without a token."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from dragoman.serve.refusal import Refusal

_HOST = re.compile(r"(?:\[(.+)\]|([^:]+))(?::\d*)?")  # an IPv6 address, or anything else; perhaps a port


def is_loopback(host: str) -> bool:
    """Whether this name or address always means this machine."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # another name: its address may change
        return False


def check_host(headers: Headers) -> None:
    """Refuse requests sent to a host name that is not this machine's.

    The owner of a name can point it here while a page of theirs is open (DNS rebinding). The browser then
    takes page and server for one site; only the name in `Host` shows that they are not.
    """
    for host in headers.getlist("host"):
        name = _HOST.fullmatch(host)
        if not name or not is_loopback(name[1] or name[2]):
            raise Refusal(
                403, f"a server without a token accepts requests only for localhost, not for {host[:100]}"
            )


def check_form(headers: Headers) -> None:
    """Refuse a form from another site's page: browsers send forms across sites without asking."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    is_foreign = (
        site not in ("same-origin", "none")
        if site is not None
        else origin is not None and _authority(origin) != headers.get("host")
    )
    if is_foreign:
        raise Refusal(
            403, "the form comes from another site; programs send neither Origin nor Sec-Fetch-Site"
        )


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:  # e.g. http://[
        return ""
