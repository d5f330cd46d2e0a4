"""Uploads of workspace files, for tests."""

from __future__ import annotations

import io
from urllib.parse import quote

URL = "/workspace/files"


def send(program, name: str | None, content: bytes = b"a,b\n1,2\n", own: str = "own.csv", more=None, **how):
    if len(content) > 100_000:  # the test client would leave a temporary file open
        head = f'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\n{name}\r\n--x\r\n'
        head += f'Content-Disposition: form-data; name="file"; filename="{own}"\r\n\r\n'
        raw = head.encode() + content + b"\r\n--x--\r\n"
        return program.post(URL, data=raw, content_type="multipart/form-data; boundary=x", **how)
    data = {
        "file": (io.BytesIO(content), own),
        **({"name": name} if name is not None else {}),
        **(more or {}),
    }
    return program.post(URL, data=data, content_type="multipart/form-data", **how)


def address(name: str) -> str:
    return f"{URL}/{quote(name)}"


def problem(answer) -> tuple[int, str]:
    return answer.status_code, answer.json["error"]["code"]
