"""The texts of the workers' page, and of workers wherever they are shown."""

WORDS = {
    "workers.title": ("Workers", "Worker"),
    "workers.hint": (
        "{n} workers; {running} of {slots} slots are taken",
        "{n} Worker; {running} von {slots} Plätzen sind belegt",
    ),
    "workers.none": (
        "No worker is alive. Start one: duly worker --app …",
        "Kein Worker lebt. Starten Sie einen: duly worker --app …",
    ),
    "workers.versions": (
        "Workers of several versions are at work: {versions}.",
        "Worker mehrerer Versionen arbeiten: {versions}.",
    ),
    "workers.state.working": ("working", "arbeitet"),
    "workers.state.draining": ("draining", "läuft leer"),
    "workers.state.silent": ("silent", "schweigt"),
    "workers.state.lost": ("lost", "verloren"),
    "workers.col.name": ("Worker", "Worker"),
    "workers.col.load": ("Slots taken", "Belegte Plätze"),
    "workers.col.queues": ("Queues", "Schlangen"),
    "workers.col.version": ("Version", "Version"),
    "workers.col.heartbeat": ("Heartbeat", "Herzschlag"),
    "workers.started": ("started", "gestartet"),
    "workers.load": ("{n} of {slots} slots are taken", "{n} von {slots} Plätzen sind belegt"),
    "workers.process": ("process {pid} on {host}", "Prozess {pid} auf {host}"),
    "workers.drain": ("Drain", "Leerlaufen"),
    "workers.drain.hint": (
        "It takes nothing more, finishes or gives back what it holds, and ends. It is not replaced.",
        "Er nimmt nichts Neues, beendet oder übergibt, was er hält, und endet. Er wird nicht ersetzt.",
    ),
    "workers.drain.asked": ("{name} was asked to drain.", "{name} soll leerlaufen."),
    "workers.drain.by": ("asked by {by}: {reason}", "veranlasst von {by}: {reason}"),
    "workers.lost": ("Lost", "Verloren"),
    "workers.lost.hint": (
        "They went silent without goodbye; their jobs went to others.",
        "Sie verstummten ohne Abmeldung; ihre Aufträge gingen an andere.",
    ),
}
