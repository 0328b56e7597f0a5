"""Which addresses on the web may be asked on behalf of a record: those of the open network, unless private ones are allowed.

Records and redirects come from strangers. An address that leads to this machine, to its neighbours or to the metadata service
of a cloud would make us ask there in their name.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

NAT64 = ipaddress.ip_network("64:ff9b::/96")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class PrivateAddress(Exception):
    """An address that leads into a private network."""


def refuse_private(url: str, *, resolve: bool = True) -> None:
    """Raise `PrivateAddress` if the host of a URL is, or is a name for, an address that the open network does not have. A name
    that nobody knows is left to whoever asks there, and so is every name if a proxy looks them up and not we."""
    flags = 0 if resolve else socket.AI_NUMERICHOST
    try:
        host = urlsplit(url).hostname or ""
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=flags)}
    except (OSError, UnicodeError, ValueError):
        return
    for text in sorted(found):
        if is_private(text):
            raise PrivateAddress(f"{host} is {text}" if host != text else host)


def is_private(text: str) -> bool:
    """Loopback, link-local, private, reserved or multicast, also where IPv6 only wraps such an address.

    >>> [is_private(text) for text in ("127.0.0.1", "169.254.169.254", "10.0.0.7", "::ffff:127.0.0.1", "193.48.96.10")]
    [True, True, True, True, False]
    """
    address = unwrap_address(ipaddress.ip_address(text.partition("%")[0]))
    return not address.is_global or address.is_multicast


def unwrap_address(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
