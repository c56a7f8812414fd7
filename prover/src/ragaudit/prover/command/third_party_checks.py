"""Checks of third parties that windows name: further cosigners, and time-stamping authorities."""

from collections.abc import Iterable
from contextlib import suppress

import httpx
from ragaudit.encoding.errors import MalformedSettings, UnavailableError
from ragaudit.http import HttpClient, OddAnswer, trusted_authorities
from ragaudit.prover.cosigner_settings import CosignerSettings, read_trust
from ragaudit.prover.lifecycle.policy_builder import third_party_members
from ragaudit.prover.lifecycle.stamping import read_stamp_roots
from ragaudit.prover.settings import Settings
from ragaudit.prover.stamp_settings import StampSettings

__all__ = ["check_cosigners", "check_time_stamps"]

_MOST_BYTES = 2**16


def check_cosigners(settings: Settings) -> None:
    """Check that further cosigners can be named as windows ask, and that each one answers."""
    section = settings.cosigners
    trust = read_trust(section)
    third_party_members(settings.window, trust)  # for what it raises
    if trust is not None:
        urls = [each.url for each in trust.cosigners if each.url is not None]
        _check_answering(urls, section, "cosigners")


def check_time_stamps(settings: Settings) -> None:
    """Check that authorities can be asked where windows want stamps, and that each one answers."""
    section = settings.time_stamps
    if section.authorities:
        read_stamp_roots(section)
    elif settings.window.time_stamps is not None:
        raise MalformedSettings(
            "no authority to ask", where="window.time_stamps", expected="time_stamps.authorities"
        )
    _check_answering(section.authorities, section, "time_stamps")


def _check_answering(
    urls: Iterable[str], section: CosignerSettings | StampSettings, name: str
) -> None:
    """Check that there is an HTTP service at each URL; what it says to a GET means nothing."""
    verify = trusted_authorities(section.ca_file, f"{name}.ca_file")
    for url in urls:
        with HttpClient(
            url,
            timeout=section.timeout_seconds,
            most=_MOST_BYTES,
            verify=verify,
            proxy=section.proxy,
        ) as service:
            try:
                with suppress(OddAnswer):
                    service.request("GET", "")
            except httpx.HTTPError as error:
                raise UnavailableError(
                    f"cannot be reached: {type(error).__name__}",
                    where=f"{name}: {url}",
                    expected="a service that answers",
                ) from None
