"""Providers of the rules."""

SheafInfo = provider(
    doc = "Sources of a library, with those of the libraries it uses.",
    fields = {
        "sources": "depset of files: modules, Sheaf.toml and Sheaf.lock",
        "data": "depset of files that the sources read",
        "packages": "depset of archives: the packages of Sheaf.lock",
    },
)

SheafProgramsInfo = provider(
    doc = "A program whose functions are compiled.",
    fields = {
        "main": "the program's file",
        "folder": "a folder of compiled functions with their manifest, as `__sheaf__` is",
        "info": "its SheafInfo",
    },
)
