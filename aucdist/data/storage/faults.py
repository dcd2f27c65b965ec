"""Errors of file systems and stores in words that say what to do."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from aucdist.data.storage.network_errors import AIOHTTP, BOTO, Exceptions, loaded
from aucdist.data.storage.progress import SLOWEST, TooSlow
from aucdist.data.storage.retries import code_of, response_of
from aucdist.data.storage.s3 import BadAnswer, Changed
from aucdist.data.storage.urls import shown
from aucdist.errors import InputError

NO_IDENTITY = ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound")
"""Exceptions of botocore: it found no credentials, or not all."""


@contextmanager
def explained(url: str, what: str) -> Iterator[None]:
    """Turn what a file system raises into an `InputError`. Its own text is left out where it could hold a secret."""
    name = shown(url)
    remote = "://" in url and not url.startswith("file://")
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError as e:
        hint = "no such bucket" if code_of(e.__cause__) == "NoSuchBucket" else "no such file or folder"
        raise InputError(f"cannot {what} {name}: {hint}") from None
    except _denied() as e:
        hint = "check the credentials (environment or profile) and the rights" if remote else "check its permissions"
        raise InputError(f"cannot {what} {name}: access denied ({type(e).__name__}); {hint}") from None
    except loaded(BOTO, "ClientError") as e:
        code = response_of(e).get("Error", {}).get("Code", "unknown")
        raise InputError(f"cannot {what} {name}: the server answered {code}") from None
    except loaded(AIOHTTP, "ClientResponseError") as e:
        raise InputError(f"cannot {what} {name}: the server answered {getattr(e, 'status', '?')}") from None
    except loaded(BOTO, "FlexibleChecksumError"):
        raise InputError(f"cannot {what} {name}: what arrives has not the checksum that it was stored with") from None
    except TooSlow:
        raise InputError(f"cannot {what} {name}: the server sends less than {SLOWEST} bytes a second") from None
    except BadAnswer as e:
        raise InputError(f"cannot {what} {name}: the server does not answer as S3 does ({e})") from None
    except _unreachable() as e:
        at = shown(str(getattr(e, "kwargs", {}).get("endpoint_url", "")))
        raise InputError(
            f"cannot {what} {name}: {at or 'the server'} cannot be reached ({type(e).__name__}); "
            "check the address and the network"
        ) from None
    except Changed:
        raise InputError(f"cannot {what} {name}: it changed meanwhile; try again when nothing writes to it") from None
    except OSError as e:
        answer = code_of(e.__cause__)
        reason = f"the server answered {answer}" if answer else os.strerror(e.errno) if e.errno else type(e).__name__
        raise InputError(f"cannot {what} {name}: {reason}") from None
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as e:
        if not remote:
            raise
        # Clients of stores read headers and XML without checks, so a wrong answer of a server may raise anything.
        raise InputError(
            f"cannot {what} {name}: the server's answer cannot be understood ({type(e).__name__})"
        ) from None


def _denied() -> Exceptions:
    return (PermissionError, *loaded(BOTO, *NO_IDENTITY))


def _unreachable() -> Exceptions:
    return (*loaded(BOTO, "BotoCoreError"), *loaded(AIOHTTP, "ClientError"), TimeoutError, ConnectionError)
