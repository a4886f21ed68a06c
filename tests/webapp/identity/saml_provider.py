"""A SAML identity provider made of pysaml2, which answers for real; it signs with python-xmlsec.

pysaml2 signs by a program that not every machine has. The library that the product brings signs
the same documents, so it stands in for that program and for nothing else.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from lxml import etree
from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT
from saml2.config import IdPConfig
from saml2.metadata import entity_descriptor
from saml2.saml import NAMEID_FORMAT_PERSISTENT, NameID
from saml2.server import Server
from saml2.xmldsig import DIGEST_SHA256, SIG_RSA_SHA256

SSO = "https://idp.northfield.example/sso"
SLO = "https://idp.northfield.example/slo"


class _Signer:
    """What pysaml2 asks of its backend to sign; nothing that it receives is signed."""

    def sign_statement(self, statement: Any, node_name: str, key_file: str, node_id: str) -> str:
        text = statement if isinstance(statement, bytes) else str(statement).encode()
        root = etree.fromstring(text)
        xmlsec.tree.add_ids(root, ["ID"])
        signed = next(node for node in root.iter() if node.get("ID") == node_id)
        signature = xmlsec.tree.find_node(signed, xmlsec.constants.NodeSignature)
        context = xmlsec.SignatureContext()
        context.key = xmlsec.Key.from_file(key_file, xmlsec.constants.KeyDataFormatPem)
        context.sign(signature)
        return etree.tostring(root).decode()


@dataclass
class SamlProvider:
    """The server, and the metadata that administrators paste."""

    server: Server
    metadata: str

    def answer(self, login_url: str, subject: str, attributes: dict[str, list[str]]) -> dict:
        """Return the form that the provider's page posts for somebody who signed in there."""
        query = parse_qs(urlsplit(login_url).query)
        asked = self.server.parse_authn_request(query["SAMLRequest"][0], BINDING_HTTP_REDIRECT)
        found = self.server.response_args(asked.message, [BINDING_HTTP_POST])
        response = self.server.create_authn_response(
            attributes,
            userid=subject,
            name_id=NameID(format=NAMEID_FORMAT_PERSISTENT, text=subject),
            in_response_to=found["in_response_to"],
            destination=found["destination"],
            sp_entity_id=found["sp_entity_id"],
            authn={"class_ref": "urn:oasis:names:tc:SAML:2.0:ac:classes:Password"},
            sign_assertion=True,
            sign_response=False,
            sign_alg=SIG_RSA_SHA256,
            digest_alg=DIGEST_SHA256,
        )
        form = self.server.apply_binding(
            BINDING_HTTP_POST, str(response), found["destination"], response=True
        )
        document = etree.HTML("".join(form["data"]))
        return {node.get("name"): node.get("value") for node in document.iter("input")}

    def log_out(self, address: str, subject: str, is_signed: bool = True) -> str:
        """Return where the provider sends the browser of somebody who signed out there."""
        (service,) = self.server.metadata.service_providers()
        _, request = self.server.create_logout_request(
            address, service, name_id=NameID(format=NAMEID_FORMAT_PERSISTENT, text=subject)
        )
        found = self.server.apply_binding(
            BINDING_HTTP_REDIRECT,
            str(request),
            address,
            sign=is_signed,
            sigalg=SIG_RSA_SHA256 if is_signed else None,
        )
        return dict(found["headers"])["Location"]


def start(folder: Path, name: str = "idp") -> tuple[dict[str, Any], str]:
    """Return the provider's configuration and metadata, with a fresh key and certificate."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name}.northfield.example")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1)
    builder = builder.not_valid_before(now - timedelta(days=1))
    certificate = builder.not_valid_after(now + timedelta(days=9)).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / f"{name}.key").write_bytes(key.private_bytes(pem, *plain))
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(pem))
    configuration = {
        "entityid": f"https://{name}.northfield.example/metadata",
        "service": {
            "idp": {
                "name": "Northfield",
                "endpoints": {
                    "single_sign_on_service": [(SSO, BINDING_HTTP_REDIRECT)],
                    "single_logout_service": [(SLO, BINDING_HTTP_REDIRECT)],
                },
                "policy": {"default": {"lifetime": {"minutes": 5}, "attribute_restrictions": None}},
            }
        },
        "key_file": str(folder / f"{name}.key"),
        "cert_file": str(folder / f"{name}.pem"),
        "xmlsec_binary": "/bin/true",  # never called, see _Signer
    }
    loaded = IdPConfig().load(dict(configuration))
    loaded.xmlsec_binary = None  # that program would be asked which algorithms it knows
    return configuration, str(entity_descriptor(loaded))


def knowing(configuration: dict[str, Any], metadata: str, service_provider: str) -> SamlProvider:
    """Return the provider that knows a service by its metadata."""
    configuration = configuration | {"metadata": {"inline": [service_provider]}}
    server = Server(config=IdPConfig().load(configuration))
    server.sec.crypto = _Signer()
    return SamlProvider(server, metadata)
