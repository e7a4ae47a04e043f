"""Why a job is where it is: the sentences, English and German."""

from __future__ import annotations

from types import MappingProxyType

SENTENCES = MappingProxyType(
    {
        "succeeded": ("It completed at {at}.", "Der Auftrag wurde um {at} fertig."),
        "partially_succeeded": (
            "It completed at {at}; {failed} of its parts failed.",
            "Der Auftrag wurde um {at} fertig; {failed} seiner Teile sind fehlgeschlagen.",
        ),
        "dead": (
            "It died at {at} after {attempts} attempts, and lies in the dead letters: {said}",
            "Der Auftrag ist um {at} nach {attempts} Versuchen endgültig gescheitert und liegt bei den"
            " unzustellbaren: {said}",
        ),
        "blocked": (
            "It was refused at {at}, and is not tried again: {said}",
            "Der Auftrag wurde um {at} abgelehnt und wird nicht wieder versucht: {said}",
        ),
        "canceled": (
            "It was canceled at {at} by the {by}: {reason}",
            "Der Auftrag wurde um {at} abgebrochen ({by}): {reason}",
        ),
        "reconciled": (
            "It was ended at {at} by the reconciler: {said}",
            "Der Auftrag wurde um {at} vom Abgleich beendet: {said}",
        ),
        "failed": ("It failed at {at}: {said}", "Der Auftrag ist um {at} fehlgeschlagen: {said}"),
        "owed": (
            "Its failure callback is still owed. It comes from {at} on.",
            "Die Meldung seines Scheiterns steht noch aus. Sie kommt ab {at}.",
        ),
        "owed_again": (
            "Its failure callback is still owed, after {tries} tries: {error}. It comes from {at} on.",
            "Die Meldung seines Scheiterns steht nach {tries} Versuchen noch aus: {error}."
            " Sie kommt ab {at}.",
        ),
        "runs": (
            "Attempt {attempt} of {most} runs on {worker}.",
            "Versuch {attempt} von {most} läuft auf {worker}.",
        ),
        "worker_unknown": ("a worker that is no longer known", "einem Worker, den niemand mehr kennt"),
        "worker_outside": ("a worker", "einem Worker"),
        "unclaimed": (
            "Nobody holds it; the reconciler fails it when its attempt is older than its type allows.",
            "Niemand hält ihn; der Abgleich beendet ihn, wenn der Versuch älter ist, als sein Typ erlaubt.",
        ),
        "worker_lost": (
            "That worker is lost; the job will be taken over.",
            "Dieser Worker ist verloren; der Auftrag wird übernommen.",
        ),
        "worker_silent": (
            "That worker was last heard of at {at}; it will be declared lost.",
            "Dieser Worker hat sich zuletzt um {at} gemeldet; er wird für verloren erklärt.",
        ),
        "cancel_requested": (
            "Its cancel was asked for at {at}: {reason}",
            "Sein Abbruch wurde um {at} verlangt: {reason}",
        ),
        "delayed": ("It may run from {at} on.", "Der Auftrag darf ab {at} laufen."),
        "backoff": (
            "It is tried again at {at}, {spent} of {most} attempts are spent; the last one ended with {said}",
            "Der nächste Versuch beginnt um {at}, {spent} von {most} Versuchen sind verbraucht; der letzte"
            " endete mit {said}",
        ),
        "unqueued": (
            "No queue has it; the reconciler will fail it.",
            "Keine Warteschlange hat ihn; der Abgleich wird ihn beenden.",
        ),
        "no_takers": (
            "No living worker takes jobs from {queue}.",
            "Kein lebender Worker nimmt Aufträge aus {queue}.",
        ),
        "before": (
            "{many} jobs of its org come first.",
            "{many} Aufträge seiner Organisation kommen zuerst.",
        ),
        "or_more": ("{n} or more", "{n} oder mehr"),
        "next": (
            "It is the next of its org, and starts when a worker has a slot free.",
            "Er ist der nächste seiner Organisation und beginnt, sobald ein Worker frei ist.",
        ),
        "paused": (
            "{what} is paused since {at}: {reason}",
            "{what}: angehalten seit {at}: {reason}",
        ),
        "paused_by": (
            "{what} is paused since {at} by {by}: {reason}",
            "{what}: angehalten seit {at} von {by}: {reason}",
        ),
        "no_reason": ("no reason given", "kein Grund angegeben"),
        "the_queue": ("The queue {queue}", "Die Warteschlange {queue}"),
        "its_org": ("Its org", "Seine Organisation"),
        "type_in_org": ("{job_type} in its org", "{job_type} in seiner Organisation"),
        "type_everywhere": ("{job_type} in all orgs", "{job_type} in allen Organisationen"),
        "full": (
            "{whose} has {running} jobs running, and may have {most}.",
            "{whose}: {running} Aufträge laufen, {most} dürfen es sein.",
        ),
        "full_everywhere": (
            "{whose} has as many jobs running as it may have.",
            "{whose}: es laufen so viele Aufträge, wie es sein dürfen.",
        ),
        "spent": (
            "{whose} may start {rate} jobs a second, and has used that up.",
            "{whose}: {rate} Aufträge dürfen je Sekunde beginnen, und das ist ausgeschöpft.",
        ),
    }
)


class Words:
    """The sentences of one language."""

    def __init__(self, language: str = "en") -> None:
        self._which = 1 if language.startswith("de") else 0

    def __call__(self, key: str, **values: object) -> str:
        """A sentence with its gaps filled."""
        return SENTENCES[key][self._which].format_map(values)
