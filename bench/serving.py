#!/usr/bin/env python3
"""Load on gdb serve --http: times of predictions, and what clients that misbehave do to others.

  gdb serve cora.gdb --http localhost:8080 &
  bench/serving.py localhost:8080            # 200 requests a second, then as many as go
  bench/serving.py localhost:8080 new        # the same with new nodes
  bench/serving.py localhost:8080 abuse      # beside 200 requests a second

Needs Python alone. A time goes from when a request is due to the end of its answer, so that a
server which falls behind is not spared. The script takes processor time too, of the same machine.
"""
import argparse
import asyncio
import json
import random
import time
import urllib.request


class Client:
    """A connection that is kept. An answer is read as far as its Content-Length says."""

    def __init__(self, host, port):
        self.host, self.port, self.writer = host, port, None

    async def ask(self, request):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        body = await self.reader.readexactly(length)
        if b"connection: close" in head.lower():
            self.close()
        return int(head[9:12]), body

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.writer = None


def post(body, path="/predict", kind="application/json"):
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def requests(info, new, count, draw):
    """Returns requests for one node each: of the store, or new with 10 neighbors."""
    out = []
    for _ in range(count):
        if new:
            row = [round(draw.random(), 3) for _ in range(info["features"])]
            near = [draw.randrange(info["nodes"]) for _ in range(10)]
            body = {"nodes": [{"features": row, "neighbors": near}]}
        else:
            body = {"ids": [draw.randrange(info["nodes"])]}
        out.append(post(json.dumps(body).encode()))
    return out


def report(name, times, bad, seconds):
    if not times:
        print(f"{name}: no answer, {bad} failed")
        return
    times.sort()
    at = [times[min(len(times) - 1, int(len(times) * q))] * 1e3 for q in (0.5, 0.99, 0.999)]
    print(f"{name}: {len(times) / seconds:.0f} a second, p50 {at[0]:.2f} ms, p99 {at[1]:.2f} ms, "
          f"p99.9 {at[2]:.2f} ms, most {times[-1] * 1e3:.1f} ms, {bad} failed", flush=True)


async def steady(address, todo, rate, seconds, name):
    """Sends requests when they are due, over as many connections as that needs."""
    times, bad, idle = [], 0, []

    async def one(due, request):
        nonlocal bad
        client = idle.pop() if idle else Client(*address)
        try:
            status, _ = await client.ask(request)
            ok = status == 200
        except (OSError, asyncio.IncompleteReadError):
            ok = False
            client.close()
        times.append(time.perf_counter() - due)
        bad += not ok
        idle.append(client)

    begun, tasks = time.perf_counter(), []
    for i in range(int(rate * seconds)):
        due = begun + i / rate
        await asyncio.sleep(max(0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(due, todo[i % len(todo)])))
    await asyncio.gather(*tasks)
    report(name, times, bad, time.perf_counter() - begun)
    for client in idle:
        client.close()


async def most(address, todo, clients, seconds):
    """Has each client send its next request when it has the answer to the last."""
    times, bad, end = [], 0, time.perf_counter() + seconds

    async def one(k):
        nonlocal bad
        client = Client(*address)
        while (begun := time.perf_counter()) < end:
            k += clients
            status, _ = await client.ask(todo[k % len(todo)])
            times.append(time.perf_counter() - begun)
            bad += status != 200
        client.close()

    await asyncio.gather(*[one(k) for k in range(clients)])
    report(f"as many as go, {clients} clients", times, bad, seconds)


async def abuse(address, draw):
    """Sends what no server should fall for, and says what it answered."""
    statuses, right = {}, post(b'{"ids":[1]}')

    async def send(data, wait=5):
        reader, writer = await asyncio.open_connection(*address)
        try:
            writer.write(data)
            head = await asyncio.wait_for(reader.read(12), wait)
            return head[9:12].decode("latin1") or "closed"
        except asyncio.TimeoutError:
            return "no answer"
        except OSError:
            return "closed"
        finally:
            writer.close()

    for i in range(10000):
        data = bytearray(right)
        for _ in range(draw.randrange(1, 6)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if i % 3 == 0:
            data = post(bytes(draw.randrange(256) for _ in range(draw.randrange(300))))
        if i % 3 == 1:
            data = data[:draw.randrange(1, len(data))] + b"\r\n\r\n"
        status = await send(bytes(data), 0.02)
        statuses[status] = statuses.get(status, 0) + 1
    print("10,000 malformed requests:", dict(sorted(statuses.items())), flush=True)
    slow = []
    for i in range(1000):
        _, writer = await asyncio.open_connection(*address)
        writer.write(right[:len(right) - 1 - i % 40])
        slow.append(writer)
    print("1,000 connections that send a part of a request are open", flush=True)
    await asyncio.sleep(5)
    for writer in slow:
        writer.close()
    head = post(b"")[:-4].replace(b"Content-Length: 0", b"Content-Length: 1073741824")
    long = [await send(head + b"\r\n\r\n" + b" " * 100000) for _ in range(50)]
    chunks = head.replace(b"Content-Length: 1073741824", b"Transfer-Encoding: chunked")
    long += [await send(chunks + b"\r\n\r\n40000000\r\n" + b" " * (3 << 20)) for _ in range(50)]
    print("100 bodies of 1 GiB:", {s: long.count(s) for s in sorted(set(long))}, flush=True)


async def main():
    p = argparse.ArgumentParser()
    p.add_argument("address")
    p.add_argument("what", nargs="?", choices=["ids", "new", "abuse"], default="ids")
    p.add_argument("--rate", type=float, default=200)
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--clients", type=int, default=16)
    a = p.parse_args()
    host, port = a.address.rsplit(":", 1)
    address, draw = (host, int(port)), random.Random(1)
    _, info = await Client(*address).ask(b"GET /info HTTP/1.1\r\nHost: localhost\r\n\r\n")
    todo = requests(json.loads(info), a.what == "new", 2000, draw)
    if a.what != "abuse":
        await steady(address, todo, a.rate, a.seconds, f"{a.rate:.0f} a second")
        await most(address, todo, a.clients, a.seconds)
        return
    bad = asyncio.create_task(abuse(address, draw))
    while not bad.done():
        await steady(address, todo, a.rate, 5, "beside it")
    await bad
    await steady(address, todo, a.rate, 5, "after it")
    with urllib.request.urlopen(f"http://{a.address}/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(("gdb_memory_used", "gdb_process_res", "gdb_http_connections")):
                print(line)


asyncio.run(main())
