"""A new window's policy from the settings: docs/spec/05-records.md §5.2."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NotRequired, TypedDict, Unpack

from ragaudit.encoding.errors import (
    MalformedError,
    MalformedSettings,
    RefusedError,
    UnsupportedError,
)
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import ceil_decimal, hex_encode, parse_decimal
from ragaudit.ledger.log.notes import ED25519, VerifierKey
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.messages.beacon import QUICKNET, BeaconChain
from ragaudit.ledger.messages.identifiers import log_origin
from ragaudit.ledger.messages.manifests import GeneratorManifest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.policy_terms import (
    DIRECTION,
    FILTER_GRAMMAR,
    NO_BEACON,
    NOISE_MEMBERS,
    BeaconTerms,
)
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.privacy.accounting.events import NoisyScores
from ragaudit.privacy.accounting.gaussian import NoFiniteBound, calibrate, epsilon
from ragaudit.privacy.coalition import hamming_threshold
from ragaudit.privacy.sample import MOST_SAMPLED, largest_sample
from ragaudit.prover.randomness import randomness_for
from ragaudit.prover.settings import WindowSettings

PLACES = 6
SEED_BYTES = 32


class NewWindow(TypedDict):
    """What a policy is built of.

    Attributes:
        window: its name.
        log_key: of this window's log, and of no other.
        tenants: rising names.
        dimension: d, of the embedder.
        tolerance: of the embedder, where the settings say none.
        verifier: the keys that the verifier shows, checked against the settings' pins.
        previous_checkpoint: the final one of the provider's last window, a note, or None.
        now: Unix milliseconds.
        trust: the further cosigners of the settings, None if they name none.
        chain: the beacon's, of the settings; used by windows that ask for one.
        generator: the manifest of the settings' model; used by windows with a generation channel.
    """

    window: str
    log_key: PublicKey
    settings: WindowSettings
    tenants: Sequence[str]
    dimension: int
    tolerance: NotRequired[int]
    verifier: ShownKeys
    previous_checkpoint: str | None
    now: int
    trust: NotRequired[TrustPolicy | None]
    chain: NotRequired[BeaconChain]
    generator: NotRequired[GeneratorManifest | None]


class PolicyBuilder:
    """Builds policies of one provider; every parameter of a window comes from its policy."""

    def __init__(self, provider: str, provider_key: PublicKey) -> None:
        self._provider = provider
        self._provider_key = provider_key

    def build(self, **about: Unpack[NewWindow]) -> Policy:
        """Return the policy of a window that is created now.

        The first activation instant is the start; the last is the sampling instant.

        Raises:
            MalformedSettings: the settings do not make a policy; the message names the member.
        """
        document = self.document(**about)
        try:
            policy = Policy.from_json(document)
        except (MalformedError, UnsupportedError) as error:
            raise MalformedSettings(
                error.what, where=f"policy: {error.where}", expected=error.expected
            ) from error
        rows = None if policy.owners is None else policy.owners.rows
        if rows is not None and (most := largest_sample(rows)) > MOST_SAMPLED:
            raise MalformedSettings(
                f"{most} rows of a large index would be sampled, and no verifier takes so many",
                where="window.owners.rows",
                expected=f"a larger beta or eta, for at most {MOST_SAMPLED}",
            )
        return policy

    def document(
        self,
        *,
        window: str,
        log_key: PublicKey,
        settings: WindowSettings,
        tenants: Sequence[str],
        dimension: int,
        verifier: ShownKeys,
        previous_checkpoint: str | None,
        now: int,
        tolerance: int = 0,
        trust: TrustPolicy | None = None,
        chain: BeaconChain = QUICKNET,
        generator: GeneratorManifest | None = None,
    ) -> dict[str, Any]:
        """Return the policy document before it is checked; arguments as `NewWindow`."""
        chosen = settings.embedder_tolerance
        # Rounded up: the verifier gets no less time to countersign than the setting says.
        start = -(-now // 1000) + settings.opens_after_seconds
        end = start + settings.length_seconds
        # t_(A-1) lies before the end, and the sampling instant after it, as spec 5.2 demands.
        instants = [*range(start, end, settings.activation_every_seconds)]
        instants.append(end + settings.sampling_after_seconds)
        origin = log_origin(self._provider, window)
        return {
            "format": Policy.FORMAT,
            "provider": self._provider,
            "window": window,
            "start": start,
            "end": end,
            "previous_checkpoint": previous_checkpoint,
            **noise_members(settings),
            **retrieval_members(settings),
            **third_party_members(settings, trust),
            **generation_members(settings, generator),
            "norm_bound": settings.bound,
            "dimension": dimension,
            "top_k_max": settings.top_k_max,
            "queries_per_account": settings.queries_per_account,
            "slots": settings.slots,
            "tenants": tenant_members(settings, tenants),
            "activation_instants": instants,
            **beacon_members(settings, chain, instants),
            "query_text_disclosure": settings.query_text_disclosure,
            "embedder_tolerance": tolerance if chosen is None else chosen,
            "estimator": estimator(settings, window),
            "filter_grammar": FILTER_GRAMMAR if settings.filters else "empty",
            "proof_mode": "on-demand",
            "audit": settings.audit.model_dump(),
            "merge_delay_seconds": settings.merge_delay_seconds,
            "clock_skew_seconds": settings.clock_skew_seconds,
            "promise_life_seconds": settings.promise_life_seconds,
            "claim_margin_seconds": settings.claim_margin_seconds,
            "release_seconds": settings.release_seconds,
            "keys": {
                "arbiter": verifier.arbiter and hex_encode(verifier.arbiter.raw),
                "log": str(VerifierKey(origin, ED25519, log_key)),
                "provider": hex_encode(self._provider_key.raw),
                "cosigner": str(verifier.cosigner),
                "verifier": hex_encode(verifier.verifier.raw),
                "verdict": hex_encode(verifier.verdict.raw),
            },
        }


def noise_members(settings: WindowSettings) -> dict[str, Any]:
    """Return the members of a policy that speak of noise: all of them null without it.

    Raises:
        MalformedSettings: nothing gives the guarantee, or a coalition has no finite epsilon.
    """
    if settings.privacy == "none":
        return dict.fromkeys((*NOISE_MEMBERS, "sampler", "experiment_seed"))
    # Found out here, not by the verifier's refusal (check 2).
    sigma, epsilon_acc, calibration = noise_of(settings)
    check_coalition(settings, sigma)
    return {
        "epsilon_acc": epsilon_acc,
        "delta_acc": settings.delta_acc,
        "delta_policy": settings.delta_policy,
        "sigma": sigma,
        "relation": settings.relation.value,
        "rows_per_document": settings.rows_per_document,
        # A policy with a k_max above its slots is malformed (spec 5.2).
        "coalition_max": min(settings.coalition_max, settings.slots),
        "calibration": calibration,
        "sampler": {"id": "ragaudit/v1/dgs", "distance": "2^-100"},
        "experiment_seed": settings.experiment_seed,
    }


def retrieval_members(settings: WindowSettings) -> dict[str, Any]:
    """Return what a policy says of indexes and requests, and what it allows beside them."""
    columns = sorted(settings.public_columns.items())
    return {
        "privacy": settings.privacy,
        "metric": settings.metric,
        "largest_norm": settings.largest_norm,
        "public_columns": [{"name": name, "type": kind} for name, kind in columns],
        "query_kinds": sorted(settings.query_kinds),
        "retry_seconds": settings.retry_seconds,
        "versions": settings.versions,
        # Left out rather than false: that is the one form of a policy without them.
        **({"account_index": True} if settings.account_index else {}),
        **({"owners": settings.owners.member()} if settings.owners else {}),
        **({"epochs": True} if settings.epochs else {}),
        **({"coalition_estimate": DIRECTION} if settings.coalition_estimate == "direction" else {}),
    }


def tenant_members(settings: WindowSettings, tenants: Sequence[str]) -> list[dict[str, Any]]:
    """Return the tenants with the keys of their owners.

    Raises:
        MalformedSettings: a key of a tenant that the window does not serve.
    """
    keys = {} if settings.owners is None else settings.owners.keys
    if unserved := sorted(keys.keys() - set(tenants)):
        where = f"window.owners.keys.{unserved[0]}"
        raise MalformedSettings("not a tenant", where=where, expected=", ".join(tenants))
    return [{"id": tenant, "owner_key": keys.get(tenant)} for tenant in tenants]


def beacon_members(
    settings: WindowSettings, chain: BeaconChain, instants: Sequence[int]
) -> dict[str, Any]:
    """Return the members that name the beacon, and the rounds that the instants fix.

    Args:
        chain: named where the settings ask for a beacon.
        instants: of the activations and the sample, Unix seconds.
    """
    delay = settings.beacon_delay_seconds
    if delay is None:
        return {"beacon": NO_BEACON, "activation_rounds": [None] * len(instants)}
    terms = BeaconTerms(chain, delay)
    rounds = [terms.round_at(instant) for instant in instants]
    return {"beacon": terms.to_json(), "activation_rounds": rounds}


def third_party_members(settings: WindowSettings, trust: TrustPolicy | None) -> dict[str, Any]:
    """Return what a policy asks of third parties; nothing where it asks nothing.

    Args:
        trust: the further cosigners, None if the settings name none.

    Raises:
        MalformedSettings: cosigners are to be named, and there are none; names that are no UTF-8.
    """
    stamps = settings.time_stamps
    members: dict[str, Any] = {} if stamps is None else {"time_stamps": {"demand": stamps}}
    if settings.cosigners is None:
        return members
    if trust is None:
        raise MalformedSettings(
            "no further cosigners", where="window.cosigners", expected="cosigners.policy_file"
        )
    try:
        text = trust.named().encode().decode()
    except UnicodeDecodeError:
        raise MalformedSettings(
            "a name that is no UTF-8", where="cosigners.policy_file", expected="UTF-8"
        ) from None
    return {**members, "cosigners": {"demand": settings.cosigners, "trust": text}}


def generation_members(
    settings: WindowSettings, generator: GeneratorManifest | None
) -> dict[str, Any]:
    """Return the terms of a generation channel; nothing for a window without one.

    Args:
        generator: the manifest of the settings' model, None if they name none.

    Raises:
        MalformedSettings: a channel without a model.
    """
    if settings.generation is None:
        return {}
    if generator is None:
        raise MalformedSettings(
            "no language model", where="window.generation", expected="the section generator"
        )
    return {"generation": settings.generation.member(generator.to_json())}


def noise_of(settings: WindowSettings) -> tuple[str, str, str]:
    """Return sigma, epsilon_acc and the words that say how sigma was chosen.

    One of sigma and epsilon_acc may be left out; it then follows from the other (spec 7.4),
    rounded against the provider: both are decimals with 6 places.

    Raises:
        MalformedSettings: both are left out, or nothing gives the guarantee.
    """
    queries, group = settings.queries_per_account, settings.rows_per_document
    try:
        if settings.sigma is None:
            if settings.epsilon_acc is None:
                raise MalformedError("neither sigma nor epsilon_acc", expected="one of them")
            sigma = calibrate(
                settings.epsilon_acc, settings.delta_acc, queries, settings.relation, group
            )
            words = (
                f"least sigma with {PLACES} places for epsilon_acc at delta_acc, {queries} queries"
            )
            return sigma, settings.epsilon_acc, words
        # Whether the two fit is the verifier's to compute (check 2), as for every other policy.
        if settings.epsilon_acc is not None:
            return settings.sigma, settings.epsilon_acc, "sigma and epsilon_acc were both given"
        event = NoisyScores.of_policy(settings.sigma, settings.relation, group, queries)
        bound = epsilon(event, parse_decimal(settings.delta_acc))
        words = f"sigma was given; epsilon_acc follows at delta_acc for {queries} queries"
        # Rounded up: a smaller epsilon than the noise gives would fail check 2.
        return settings.sigma, ceil_decimal(Fraction(bound), PLACES), words
    except MalformedSettings:
        raise
    except MalformedError as error:
        raise MalformedSettings(error.what, where="window", expected=error.expected) from error
    except (NoFiniteBound, RefusedError) as error:
        raise MalformedSettings(
            error.what, where="window.sigma", expected=error.expected
        ) from error


def check_coalition(settings: WindowSettings, sigma: str) -> None:
    """Check that delta_policy has a finite epsilon for coalition_max accounts together.

    Args:
        sigma: decimal, cosine units.

    Raises:
        MalformedSettings: it has none, and every verifier would refuse the window.
    """
    # More accounts than there are slots cannot act together.
    queries = min(settings.coalition_max, settings.slots) * settings.queries_per_account
    event = NoisyScores.of_policy(sigma, settings.relation, settings.rows_per_document, queries)
    try:
        epsilon(event, parse_decimal(settings.delta_policy))
    except NoFiniteBound as error:
        raise MalformedSettings(
            f"no finite epsilon for {queries} queries of a coalition at delta_policy",
            where="window.sigma",
            expected="more noise, fewer queries, a smaller coalition_max or a larger delta_policy",
        ) from error


def estimator(settings: WindowSettings, window: str) -> dict[str, Any]:
    """Return the policy's estimator with a fresh public seed (docs/spec/05-records.md §5.2).

    Args:
        window: its name, for a seeded draw.
    """
    parameters = settings.estimator
    randomness = randomness_for(settings.experiment_seed)
    return {
        **parameters.model_dump(),
        # Fresh for each window: sketches of two windows cannot be compared.
        "seed": hex_encode(randomness.draw(SEED_BYTES, "sketch seed", window)),
        "hamming_threshold": hamming_threshold(parameters.theta, parameters.sketch_bits),
    }
