"""Certificates for tests of encrypted connections."""

import datetime as dt
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates; all files lie in one folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._name, self._key = _called(name), ec.generate_private_key(ec.SECP256R1())
        self._ca = folder / f"{name}.crt"
        own = self._signed(self._name, self._key.public_key(), days=2, ca=True)
        self._ca.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def files(self, name: str, days: float = 1) -> tuple[str, str, str]:
        """Return authority, certificate and key; the certificate ends in so many days, or did if they are negative."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(_called(name), key.public_key(), days, ca=False)
        cert_file, key_file = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        key_file.write_bytes(key.private_bytes(*form))
        return str(self._ca), str(cert_file), str(key_file)

    def _signed(self, name: x509.Name, key: ec.EllipticCurvePublicKey, days: float, ca: bool) -> x509.Certificate:
        end = dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(end - dt.timedelta(days=30))
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )


def _called(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
