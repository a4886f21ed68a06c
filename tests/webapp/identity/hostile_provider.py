"""A provider of OpenID Connect that answers as an attacker would, on a port of this machine."""

import base64
import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT = "bethe-hall"
SECRET = "hush"


@dataclass
class Key:
    """A key pair with its name."""

    kid: str
    private: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )

    def public(self, **more: str) -> dict[str, Any]:
        """Return the key as the provider publishes it."""
        own = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.private.public_key()))
        return own | {"kid": self.kid, "use": "sig", "alg": "RS256"} | more

    def pem(self) -> bytes:
        """Return the public key as a text, which some libraries take for a shared secret."""
        return self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )


@dataclass
class HostileProvider:
    """Answers of the provider; a test changes them before somebody signs in."""

    url: str = ""
    key: Key = field(default_factory=lambda: Key("one"))
    published: list[dict[str, Any]] = field(default_factory=list)
    claims: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    signing: str = "right"
    has_token: bool = True
    asked: list[str] = field(default_factory=list)
    asked_for: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.published = self.published or [self.key.public()]

    def begin(self, address: str) -> str:
        """Remember with what a browser was sent here; return where it is sent back to."""
        self.asked_for = {k: v[0] for k, v in parse_qs(urlsplit(address).query).items()}
        back = urlsplit(self.asked_for["redirect_uri"]).path
        return f"{back}?{urlencode({'code': 'c', 'state': self.asked_for['state']})}"

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        """Return status and body of one request."""
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            return 200, {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "userinfo_endpoint": f"{self.url}/userinfo",
            }
        if path == "/keys":
            return 200, {"keys": self.published}
        if path == "/token":
            answer = {"access_token": "a", "token_type": "Bearer", "expires_in": 60}
            return 200, answer | ({"id_token": self.token()} if self.has_token else {})
        if path == "/userinfo":
            return 200, self.claims
        return 404, {}

    def token(self) -> str:
        """Return an ID token, signed as ``signing`` says."""
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300,
            "nonce": self.asked_for.get("nonce"), **self.claims, **self.changes,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"kid": self.key.kid}
        if self.signing == "none":
            return jwt.encode(claims, None, algorithm="none", headers=header)
        if self.signing == "client secret":
            return jwt.encode(claims, SECRET.ljust(32, "."), algorithm="HS256", headers=header)
        if self.signing == "public key as a secret":
            return _hs256(claims, self.key.pem(), header)
        if self.signing == "another key":
            return jwt.encode(claims, Key("x").private, algorithm="RS256", headers=header)
        good = jwt.encode(claims, self.key.private, algorithm="RS256", headers=header)
        if self.signing == "changed":
            head, body, signature = good.split(".")
            changed = _b64(json.dumps(claims | {"groups": ["hall-admins"]}).encode())
            return f"{head}.{changed if changed != body else body[:-2] + 'AA'}.{signature}"
        if self.signing == "cut off":
            return good.rpartition(".")[0] + "."
        return good


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _hs256(claims: dict[str, Any], secret: bytes, header: dict[str, str]) -> str:
    """Sign with any secret: PyJWT itself refuses a public key there."""
    import hashlib
    import hmac

    head = _b64(json.dumps({"alg": "HS256", "typ": "JWT"} | header).encode())
    text = f"{head}.{_b64(json.dumps(claims).encode())}"
    return f"{text}.{_b64(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


@contextmanager
def running() -> Iterator[HostileProvider]:
    """Yield a provider that answers on a free port."""
    provider = HostileProvider()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(*provider.answer(urlsplit(self.path).path))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.do_GET()

        def _say(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    provider.url = f"http://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
