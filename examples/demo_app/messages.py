"""The texts of the demo's own pages, in English and German."""

PROMISES = {
    "I1": (
        "Every accepted job exists: ended or active",
        "Jeder angenommene Auftrag existiert: beendet oder aktiv",
    ),
    "I2": (
        "A job ends exactly once, and its last event records the outcome",
        "Ein Auftrag endet genau einmal, und sein letztes Ereignis hält das Ergebnis fest",
    ),
    "I3": ("Events are numbered without gaps", "Ereignisse sind lückenlos nummeriert"),
    "I4": ("Every status transition is allowed", "Jeder Statuswechsel ist erlaubt"),
    "I5": (
        "Progress never falls, and completed means 100 %",
        "Fortschritt fällt nie, und fertig heißt 100 %",
    ),
    "I6": (
        "No write of a lost attempt is accepted",
        "Kein Schreibzugriff eines verlorenen Versuchs wird angenommen",
    ),
    "I7": (
        "Exactly once: a booking commits with its job",
        "Genau einmal: Eine Buchung wird mit ihrem Auftrag festgeschrieben",
    ),
    "I8": (
        "No more attempts than allowed, crashed ones counted",
        "Nicht mehr Versuche als erlaubt, abgestürzte zählen mit",
    ),
    "I9": ("No job starts before its time", "Kein Auftrag beginnt vor seiner Zeit"),
    "I10": ("The same key is the same job", "Derselbe Schlüssel ist derselbe Auftrag"),
    "I11": ("Every dead job has exactly one dead letter", "Jeder tote Auftrag hat genau einen Dead Letter"),
    "I12": ("One final result if and only if completed", "Genau ein Endergebnis, wenn und nur wenn fertig"),
    "I13": (
        "A tick of a schedule is one job, or recorded as missed",
        "Ein Termin ist ein Auftrag oder als versäumt vermerkt",
    ),
    "I14": (
        "A stream has every event once, in order",
        "Ein Stream enthält jedes Ereignis einmal, in Reihenfolge",
    ),
    "I15": (
        "The events feed has every event and no other",
        "Der Feed enthält jedes Ereignis und kein anderes",
    ),
    "I16": ("No org sees jobs of another", "Keine Organisation sieht Aufträge anderer"),
    "I17": (
        "Lost leases are taken over in time, and only those",
        "Verlorene Leases werden rechtzeitig übernommen, und nur diese",
    ),
    "I18": ("A job canceled in the queue never starts", "Ein wartend abgebrochener Auftrag beginnt nie"),
    "I19": ("Ended jobs never change", "Beendete Aufträge ändern sich nie"),
}

MESSAGES = {
    **{f"demo.promise.{name}": text for name, text in PROMISES.items()},
    "demo.title": ("Demo", "Demo"),
    "demo.kill": ("Kill a worker", "Worker abschießen"),
    "demo.kill.hint": (
        "kill -9: other workers take over its jobs, and a new process replaces it.",
        "kill -9: Andere Worker übernehmen seine Aufträge, und ein neuer Prozess ersetzt ihn.",
    ),
    "demo.freeze": ("Freeze a worker", "Worker einfrieren"),
    "demo.freeze.hint": (
        "SIGSTOP until another worker has taken over, then SIGCONT: its late write is refused.",
        "SIGSTOP, bis ein anderer Worker übernommen hat, dann SIGCONT: Sein später Schreibversuch scheitert.",
    ),
    "demo.busy": (
        "The takeover of the last one is in progress.",
        "Die letzte Übernahme läuft noch.",
    ),
    "demo.did.kill": (
        "{worker} (process {pid}) was killed while it held this job. "
        "Another worker takes over within seconds.",
        "{worker} (Prozess {pid}) wurde beendet, während er diesen Auftrag bearbeitete. In einigen "
        "Sekunden übernimmt ein anderer.",
    ),
    "demo.did.freeze": (
        "{worker} (process {pid}) was frozen while it held this job. It wakes up when "
        "another has taken over.",
        "{worker} (Prozess {pid}) wurde eingefroren, während er diesen Auftrag bearbeitete. Er "
        "wacht auf, wenn ein anderer übernommen hat.",
    ),
    "demo.incidents": ("Incidents", "Vorfälle"),
    "demo.none": (
        "No worker has been killed yet. Try it: no job is lost.",
        "Noch wurde kein Worker beendet. Versuchen Sie es: Kein Auftrag geht verloren.",
    ),
    "demo.worker": ("Worker", "Worker"),
    "demo.job": ("Its job", "Auftrag"),
    "demo.struck": ("Killed or frozen", "Beendet oder eingefroren"),
    "demo.struck.kill": ("killed", "beendet"),
    "demo.struck.freeze": ("frozen", "eingefroren"),
    "demo.lost": ("Lease lost", "Lease verloren"),
    "demo.taken": ("Taken over", "Übernommen"),
    "demo.by": ("by {worker}", "von {worker}"),
    "demo.woken": ("Woke up", "Aufgewacht"),
    "demo.refused": ("Late write refused", "Später Schreibversuch abgelehnt"),
    "demo.after": ("after {seconds} s", "nach {seconds} s"),
    "demo.waits": ("…", "…"),
    "demo.promises": ("Promises", "Zusagen"),
    "demo.promises.hint": (
        "Checked for every job after its end, and for the answers to clients, readers and other orgs. "
        "{jobs} jobs so far.",
        "Geprüft für jeden Auftrag nach seinem Ende und für die Antworten an Clients, Leser und andere "
        "Organisationen. Bisher {jobs} Aufträge.",
    ),
    "demo.promise": ("Promise", "Zusage"),
    "demo.checked": ("Checked", "Geprüft"),
    "demo.verdict": ("Verdict", "Ergebnis"),
    "demo.verdict.held": ("holds", "erfüllt"),
    "demo.verdict.broken": ("violated: {n}", "verletzt: {n}"),
    "demo.verdict.unseen": ("no evidence yet", "noch kein Beleg"),
    "demo.strip": ("Promises checked so far", "Bisher geprüfte Zusagen"),
    "demo.strip.all": (
        "{held} promises hold",
        "{held} Zusagen erfüllt",
    ),
    "demo.strip.error": (
        "Promises cannot be checked at the moment: {why}",
        "Zusagen können gerade nicht geprüft werden: {why}",
    ),
    "demo.strip.broken": ("{broken} promises broken", "{broken} Zusagen gebrochen"),
    "demo.short.I1": ("no job lost", "kein Auftrag verloren"),
    "demo.short.I7": ("exactly once", "genau einmal"),
    "demo.short.I6": ("no stale write", "kein später Schreibzugriff"),
    "demo.short.I3": ("no gap in events", "Ereignisse lückenlos"),
    "demo.short.I16": ("tenants isolated", "Mandanten getrennt"),
}
