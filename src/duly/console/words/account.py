"""The texts of the page about who is logged in."""

WORDS = {
    "account.title": ("Your log-in", "Ihre Anmeldung"),
    "account.who": ("Signed in as", "Angemeldet als"),
    "account.api_key": ("API key {id}", "API-Schlüssel {id}"),
    "account.user": ("{id}", "{id}"),
    "account.operator": ("{id}, operator of the installation", "{id}, betreibt die Installation"),
    "account.org": ("Org", "Organisation"),
    "account.may": ("May", "Darf"),
    "account.sessions": ("Where you are signed in", "Wo Sie angemeldet sind"),
    "account.name": ("Log-in", "Anmeldung"),
    "account.name.hint": (
        "The audit trail calls log-ins by these names.",
        "Im Audit-Protokoll heißen die Anmeldungen so.",
    ),
    "account.since": ("Since", "Seit"),
    "account.until": ("Until", "Bis"),
    "account.current": ("this browser", "dieser Browser"),
    "account.everywhere": ("Sign out everywhere", "Überall abmelden"),
    "account.none": (
        "You came with a key or a token, and without a log-in.",
        "Sie kommen mit einem Schlüssel oder Token, ohne Anmeldung.",
    ),
}
