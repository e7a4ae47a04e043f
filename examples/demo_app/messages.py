"""The texts of the demo's own pages, English and German."""

PROMISES = {
    "I1": (
        "Every accepted job is there, and ended or at work",
        "Jeder angenommene Auftrag ist da: beendet oder in Arbeit",
    ),
    "I2": (
        "A job ends exactly once, and its last event says how",
        "Ein Auftrag endet genau einmal, und sein letztes Ereignis sagt wie",
    ),
    "I3": ("Events are numbered without gaps", "Ereignisse sind lückenlos nummeriert"),
    "I4": ("Every step from status to status is allowed", "Jeder Schritt von Status zu Status ist erlaubt"),
    "I5": (
        "Progress never falls, and completed means 100 %",
        "Fortschritt fällt nie, und fertig heißt 100 %",
    ),
    "I6": (
        "No write of a lost attempt is accepted",
        "Kein Schreiben eines verlorenen Versuchs wird angenommen",
    ),
    "I7": (
        "Nothing is done twice: a booking commits once with its job",
        "Nichts geschieht doppelt: Eine Buchung gilt einmal, mit ihrem Auftrag",
    ),
    "I8": (
        "No more attempts than allowed, crashed ones counted",
        "Nicht mehr Versuche als erlaubt, abgestürzte zählen mit",
    ),
    "I9": ("Nothing starts before its time", "Nichts beginnt vor seiner Zeit"),
    "I10": ("The same key is the same job", "Derselbe Schlüssel ist derselbe Auftrag"),
    "I11": ("What died is a dead letter, once", "Was gestorben ist, ist ein unzustellbarer Auftrag, einmal"),
    "I12": ("One final result if and only if completed", "Genau ein Endergebnis, wenn und nur wenn fertig"),
    "I13": (
        "A tick of a schedule is one job, or recorded as missed",
        "Ein Termin ist ein Auftrag oder als versäumt vermerkt",
    ),
    "I14": (
        "A stream shows every event once, in order",
        "Ein Strom zeigt jedes Ereignis einmal, der Reihe nach",
    ),
    "I15": (
        "The feed leaves nothing out and makes nothing up",
        "Der Feed lässt nichts aus und erfindet nichts",
    ),
    "I16": ("No org learns of another's jobs", "Keine Organisation erfährt von Aufträgen anderer"),
    "I17": (
        "Lost leases are taken over in time, and only those",
        "Verlorene Leases werden rechtzeitig übernommen, und nur diese",
    ),
    "I18": ("What was canceled while it waited never starts", "Was wartend abgebrochen wurde, beginnt nie"),
    "I19": ("Ended jobs never change", "Beendete Aufträge ändern sich nie"),
}

WORDS = {
    **{f"demo.promise.{name}": said for name, said in PROMISES.items()},
    "demo.title": ("Demo", "Demo"),
    "demo.kill": ("Kill a worker", "Einen Worker töten"),
    "demo.kill.hint": (
        "kill -9: its jobs go to the others, and a new worker takes its place.",
        "kill -9: Seine Aufträge gehen an die anderen, und ein neuer Worker tritt an seine Stelle.",
    ),
    "demo.freeze": ("Freeze a worker", "Einen Worker einfrieren"),
    "demo.freeze.hint": (
        "SIGSTOP until another has taken over, then SIGCONT: it wakes, writes, and is refused.",
        "SIGSTOP, bis ein anderer übernommen hat, dann SIGCONT: Er wacht auf, schreibt und wird abgewiesen.",
    ),
    "demo.busy": (
        "The last one is still being taken over.",
        "Der letzte wird noch übernommen.",
    ),
    "demo.did.kill": (
        "{worker} (process {pid}) was killed while it held this job. In some seconds another takes over.",
        "{worker} (Prozess {pid}) wurde getötet, während er diesen Auftrag hielt. In einigen "
        "Sekunden übernimmt ein anderer.",
    ),
    "demo.did.freeze": (
        "{worker} (process {pid}) was frozen while it held this job. It wakes up when "
        "another has taken over.",
        "{worker} (Prozess {pid}) wurde eingefroren, während er diesen Auftrag hielt. Er "
        "wacht auf, wenn ein anderer übernommen hat.",
    ),
    "demo.incidents": ("What became of them", "Was daraus wurde"),
    "demo.none": (
        "Nobody was killed yet. Try it: no job is lost.",
        "Noch niemand wurde getötet. Versuchen Sie es: Kein Auftrag geht verloren.",
    ),
    "demo.worker": ("Worker", "Worker"),
    "demo.job": ("Job it held", "Gehaltener Auftrag"),
    "demo.struck": ("Killed or frozen", "Getötet oder eingefroren"),
    "demo.struck.kill": ("killed", "getötet"),
    "demo.struck.freeze": ("frozen", "eingefroren"),
    "demo.lost": ("Lease lost", "Lease verloren"),
    "demo.taken": ("Taken over", "Übernommen"),
    "demo.by": ("by {worker}", "von {worker}"),
    "demo.woken": ("Woke up", "Aufgewacht"),
    "demo.refused": ("Its write was refused", "Sein Schreiben abgewiesen"),
    "demo.after": ("after {seconds} s", "nach {seconds} s"),
    "demo.waits": ("…", "…"),
    "demo.promises": ("Promises", "Versprechen"),
    "demo.promises.hint": (
        "Asked of every job when it has ended, and of what clients, readers and strangers "
        "were told meanwhile. "
        "{jobs} jobs so far.",
        "Von jedem Auftrag gefragt, wenn er geendet hat, und von dem, was Clients, Lesern und Fremden "
        "unterdessen gesagt wurde. Bisher {jobs} Aufträge.",
    ),
    "demo.promise": ("Promise", "Versprechen"),
    "demo.checked": ("Checked", "Geprüft"),
    "demo.verdict": ("Verdict", "Urteil"),
    "demo.verdict.held": ("held", "gehalten"),
    "demo.verdict.broken": ("broken: {n}", "gebrochen: {n}"),
    "demo.verdict.unseen": ("no evidence yet", "noch kein Beleg"),
    "demo.strip": ("Promises checked so far", "Bisher geprüfte Versprechen"),
    "demo.strip.all": (
        "{held} promises held",
        "{held} Versprechen gehalten",
    ),
    "demo.strip.trouble": (
        "Promises cannot be checked just now: {why}",
        "Versprechen können gerade nicht geprüft werden: {why}",
    ),
    "demo.strip.broken": ("{broken} promises broken", "{broken} Versprechen gebrochen"),
    "demo.short.I1": ("no job lost", "kein Auftrag verloren"),
    "demo.short.I7": ("nothing twice", "nichts doppelt"),
    "demo.short.I6": ("no stale write", "kein spätes Schreiben"),
    "demo.short.I3": ("no gap in events", "Ereignisse lückenlos"),
    "demo.short.I16": ("no org sees another's", "kein Blick zu anderen"),
}
