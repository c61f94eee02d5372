"""A self-signed certificate for servers on loopback."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def certificate_of(host: x509.GeneralName, folder: Path, days: float = 1) -> Path:
    """Write a certificate for a host, and its key, into one file; it ends in so many days."""
    key, name, now = ec.generate_private_key(ec.SECP256R1()), x509.Name([]), datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([host]), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    written = folder / "certificate.pem"
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    written.write_bytes(signed.public_bytes(pem) + secret)
    return written
