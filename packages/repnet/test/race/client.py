"""client.py PORT LIMIT ADDRESS...: connects by asyncio with its Happy Eyeballs; prints milliseconds and an error."""

import asyncio
import socket
import sys
import time


async def main() -> None:
    """Connects once."""
    port, limit, *addresses = sys.argv[1:]
    found = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (a, int(port), 0, 0))
        if ":" in a
        else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, int(port)))
        for a in addresses
    ]

    async def resolve(*_args: object, **_options: object) -> list[tuple]:
        return found

    asyncio.get_running_loop().getaddrinfo = resolve
    begun = time.perf_counter()
    try:
        dial = asyncio.open_connection("a.name", int(port), happy_eyeballs_delay=0.25)
        _, writer = await asyncio.wait_for(dial, int(limit) / 1000)
        writer.write(b"x")
        sys.stdout.write(f"{(time.perf_counter() - begun) * 1000:.1f}")
    except TimeoutError:
        sys.stdout.write("none")
    except OSError:
        sys.stdout.write(f"{(time.perf_counter() - begun) * 1000:.1f} error")


asyncio.run(main())
