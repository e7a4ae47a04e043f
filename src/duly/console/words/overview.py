"""The texts of the overview."""

WORDS = {
    "overview.title": ("Overview", "Überblick"),
}
