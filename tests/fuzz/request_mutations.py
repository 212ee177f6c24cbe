"""Mutation of HTTP requests to the server example: arrays, JSON, binary data, headers, framing and single bytes."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from serve.protocol import write_binary
from serve.signature import Signature, TensorSpec

NUMBERS = ("0", "1", "-1", "2", "255", "256", "1e5", "1.5", "-0.0", "1e400", "NaN", "-Infinity", "9" * 400, "1" * 5000)
NUMBERS += tuple(
    str(sign * 2**k + more) for k in (7, 15, 31, 53, 63, 64, 70) for sign in (1, -1) for more in (-1, 0, 1)
)
VALUES = (*NUMBERS, "true", "null", '"1"', '"\\ud800"', "[]", "{}", "[[1]]", '{"x": 1}', "", "[" * 200, "[" * 20_000)
NAMES = ("x", "k", "", "é", "\U0001f600", "\ud800", "\x1b[31m", "</script>", "a" * 3000, "output_0", "../x", "\0")
NAMES += (
    "inputs",
    "outputs",
    "parameters",
    "name",
    "shape",
    "datatype",
    "data",
    "id",
    "binary_data_size",
    "binary_data",
)
NAMES += (
    "binary_data_output",
    "timeout",
    "sequence_id",
    "shared_memory_region",
    "classification",
    "FP32",
    "BYTES",
    "BF16",
)
TOKENS = ("[", "]", "{", "}", ",", ":", '"', "\\", " ", "\n", "\0", "\ufeff", "\u2028", "//", "/*", "'", "e", "-", ".")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "utf-32-le", "utf-7", "latin-1", "cp037")
METHODS = ("POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "post", "PRI", "X" * 300)
INFER = "/v2/models/model/infer"
TARGETS = (INFER, "/v2/health/live", "/metrics", "/v2", "/", f"{INFER}/", "/v2/", f"//host{INFER}", f"{INFER}?x=1", "*")
TARGETS += ("/v2/models/model", "/v2/models/model/versions/1/infer", "/v2/models/model/versions/2/ready", "/v2/models")
TARGETS += (
    "/v2/repository/index",
    "/v2/repository/models/model/load",
    "/v2/models/../infer",
    "/v2/models/..%2fa/infer",
)
TARGETS += ("/%762/models/model/infer", f"{INFER}%00", f"{INFER}%0d%0aa:b", "/%ff", f"http://host{INFER}", "host:80")
TARGETS += ("/" + "a" * 5000, f"{INFER}#x", "/;x", "/docs", "/openapi.json", "/\\host/", "/v2?" + "a&" * 500)
LENGTH = "inference-header-content-length"
LENGTHS = ("0", "1", "-1", "+5", "5, 5", "1e3", "", " ", "9" * 30, "\u00b2", "100000")
HEADERS = (
    *(("transfer-encoding", each) for each in ("chunked", "identity", "gzip, chunked", "Chunked", "chunked, chunked")),
    *(("content-length", each) for each in ("0", "1", "-1", "+5", "5, 5", "5, 6", "1e3", "0x10", "", "9" * 30)),
    *(("content-encoding", each) for each in ("gzip", "br", "identity", "deflate")),
    *((LENGTH, each) for each in LENGTHS),
    *(("connection", each) for each in ("close", "keep-alive", "upgrade", "close, upgrade", "content-type")),
    *(("upgrade", each) for each in ("websocket", "h2c", "")),
    *(("expect", each) for each in ("100-continue", "200-ok", "")),
    *(("host", each) for each in ("here", "", "a:b:c", "[::1]", "h" * 3000, "a/../b", "<x>", "here\x7f")),
    *(("accept", "*/*"), ("range", "bytes=0-"), ("cookie", "a=b" * 1000), ("sec-websocket-key", "x"), ("trailer", "x")),
    *(("x-" + "a" * 3000, "b"), ("x-forwarded-for", "1.2.3.4"), ("forwarded", "for=x"), ("authorization", "Basic =")),
)
LARGEST = 1 << 18  # limit on the characters of JSON


@dataclass(frozen=True)
class Request:
    """An HTTP request.

    framing: "length" for a content-length header, "chunked", or "none".   json_bytes: the length of the JSON at the
    beginning of the body, which binary data can follow.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    framing: str = "length"
    json_bytes: int = 0


def right_request(signature: Signature, random: Random) -> Request:
    """Return a request with inputs of the right dtypes and the same number of rows, which is usually valid."""
    rows, size = random.choice((1, 1, 2, 5)), random.choice((0, 1, 3, 3))
    arrays = [(each, _array(each, rows, size, random)) for each in signature.inputs]
    inputs, parts = [], []
    for spec, array in arrays:
        fields = {**spec.metadata, "shape": list(array.shape)}
        if spec.datatype == "BF16" or random.random() < 0.5:
            parts.append(bytes(write_binary(array, spec.datatype)))
            fields["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            fields["data"] = (array if random.random() < 0.5 else array.ravel()).tolist()
        inputs.append(fields)
    request = {"inputs": inputs, "parameters": {"binary_data_output": random.random() < 0.5}}
    text = json.dumps(request, indent=random.choice((None, None, 1))).encode()
    headers = (("host", "here"), (LENGTH, str(len(text)))) if parts else (("host", "here"),)
    return Request("POST", INFER, headers, b"".join((text, *parts)), json_bytes=len(text))


def mutated(signature: Signature, random: Random) -> Request:
    """Return a request from `right_request` with one to three changes."""
    request = right_request(signature, random)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        change = random.choices((_changed_body, _changed_head, _changed_framing), (7, 2, 1))[0]
        request = change(request, random)
    return request


def unchanged(request: Request) -> bytes:
    """Encode a request."""
    lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in request.headers)]
    if request.framing == "length":
        lines.append(f"content-length: {len(request.body)}")
    elif request.framing == "chunked":
        lines.append("transfer-encoding: chunked")
    return "\r\n".join((*lines, "", "")).encode("utf-8", "surrogatepass") + request.body


def written(request: Request, random: Random) -> bytes:
    """Encode a request, sometimes with changed bytes in the header.  A chunked body is divided into random chunks."""
    if request.framing == "chunked":
        request = replace(request, body=_chunked(request.body, random))
    head, end, body = unchanged(request).partition(b"\r\n\r\n")
    if random.random() < 0.2:
        head = _changed_bytes(head, random)
    return head + end + body


def pieces(data: bytes, random: Random) -> list[bytes]:
    """Divide data into the pieces in which a server might receive it.  Sometimes the last piece is missing."""
    cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.choice((0, 0, 1, 2, 10)))) if data else []
    ends = [*cuts, len(data)]
    found = [data[start:end] for start, end in zip([0, *cuts], ends, strict=True)]
    return found[:-1] if random.random() < 0.05 else found


# ---- bodies ----


def _array(expected: TensorSpec, rows: int, size: int, random: Random) -> np.ndarray:
    shape = [int(each) if each.isdecimal() else size if axis else rows for axis, each in enumerate(expected.sizes)]
    values = [random.choice((0, 1, 1, 2, 3, 100)) for _ in range(int(np.prod(shape)))]
    if expected.datatype == "BYTES":
        return np.array([str(value) for value in values], object).reshape(shape)
    return np.array(values, float).reshape(shape).astype(expected.dtype)


def _changed_body(request: Request, random: Random) -> Request:
    """Return the request with a changed body.  The header with the length of the JSON is usually updated."""
    if random.random() < 0.15:
        return replace(request, body=_changed_bytes(request.body, random))
    if random.random() < 0.05:
        compress = random.choice((gzip.compress, zlib.compress))
        encoding = random.choice(("gzip", "deflate"))
        return replace(request, body=compress(request.body), headers=(*request.headers, ("content-encoding", encoding)))
    text, rest = request.body[: request.json_bytes], request.body[request.json_bytes :]
    if rest and random.random() < 0.2:
        return replace(request, body=text + _changed_bytes(rest, random))
    text = _changed_json(text, random)
    headers = request.headers
    if random.random() < 0.9:
        headers = tuple((name, str(len(text)) if name == LENGTH else value) for name, value in headers)
    return replace(request, body=text + rest, headers=headers, json_bytes=len(text))


def _changed_json(body: bytes, random: Random) -> bytes:
    text = body.decode("utf-8", "surrogateescape")
    match random.randrange(8):
        case 0:  # replace an element, or a part of it
            parts = text.split(",")
            at = random.randrange(len(parts))
            inner = parts[at].strip("[]{} \n")
            parts[at] = parts[at].replace(inner, random.choice(VALUES)) if inner else random.choice(VALUES)
            text = ",".join(parts)
        case 1:  # replace a string
            parts = text.split('"')
            at = random.randrange(len(parts))
            parts[at] = json.dumps(random.choice(NAMES))[1:-1]
            text = '"'.join(parts)
        case 2:  # insert names, possibly duplicate or unknown ones
            name, value = json.dumps(random.choice(NAMES)), random.choice(VALUES)
            text = text.replace("{", f"{{{name}: {value}, " * random.choice((1, 1, 2, 200)), 1)
        case 3:
            at = random.randrange(len(text) + 1)
            text = text[:at] + random.choice(TOKENS) * random.choice((1, 1, 2, 100)) + text[at + random.randrange(3) :]
        case 4:  # nest arrays deeply
            depth = random.choice((1, 2, 30, 64, 65, 1000, 30_000)) if text.count("[") + text.count("]") < 40 else 2
            text = text.replace("[", "[" * depth).replace("]", "]" * depth)
        case 5:
            start, end = sorted(random.randrange(len(text) + 1) for _ in range(2))
            text = text[:start] + text[start:end] * random.choice((0, 2, 2, 50)) + text[end:]
        case 6:  # append spaces, sometimes more than the event loop reads at once
            text += " " * (1 << 16) if random.random() < 0.02 else " "
        case _:
            text = random.choice(VALUES)
    text = text[:LARGEST]
    encoding = random.choice(ENCODINGS) if random.random() < 0.1 else "utf-8"
    return text.encode(encoding, "replace" if encoding in ("latin-1", "cp037", "utf-7") else "surrogatepass")


def _changed_bytes(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(changed) + 1)
        match random.randrange(4):
            case 0:
                changed[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del changed[at : at + random.choice((1, 2, 10))]
            case 2:
                changed[at:at] = random.choice((b"\r\n", b"\0", b"\n", b" ", b":", b"\xff\xfe", b"\r\n\r\n", b"0"))
            case _:
                changed[at:at] = changed[at : at + random.choice((1, 5, 50))] * random.choice((1, 2, 300))
    return bytes(changed)


# ---- heads and framing ----


def _changed_head(request: Request, random: Random) -> Request:
    match random.randrange(5):
        case 0:
            return replace(request, method=random.choice(METHODS))
        case 1:
            return replace(request, target=random.choice(TARGETS))
        case 2:
            return replace(request, headers=(("host", "here"), (LENGTH, random.choice(LENGTHS))))
        case 3:
            return replace(request, headers=request.headers * random.choice((0, 2, 40)))
        case _:
            return replace(
                request, headers=(*request.headers, random.choice(HEADERS) if random.random() < 0.9 else _odd)
            )


_odd = ("x y", "\x00")


def _changed_framing(request: Request, random: Random) -> Request:
    return replace(request, framing=random.choice(("chunked", "chunked", "none")))


def _chunked(body: bytes, random: Random) -> bytes:
    made, at = bytearray(), 0
    while at < len(body):
        size = random.choice((1, 7, 100, 5000))
        part = body[at : at + size]
        length = (
            f"{len(part):x}" if random.random() < 0.97 else random.choice(("", "-1", "g", "f" * 20, "0x1", "1 ", "0"))
        )
        made += f"{length}{random.choice(('', '', '', ';a=b', ';' + 'a' * 300))}\r\n".encode() + part + b"\r\n"
        at += size
        if len(made) > 1 << 17:
            break
    return bytes(made) + random.choice(
        (b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nx: y\r\n\r\n", b"", b"0\r\n", b"0\r\n\0\r\n\r\n")
    )
