"""Packages at the size of use, beside git, cargo and uv: a registry of 10,000 packages with 10 versions each, a graph of 200.

    packages.py [--uv UV] [--sheaf SHEAF] [--runs 9]    with cargo and git in PATH; without a uv its lines are left out

Runs `cargo bench -p sheaf-registry --bench packages`, gives the same registry to the others in the forms that they read, and
prints a table of medians in milliseconds. All servers are on loopback. With the path of a `sheaf` its starts are timed too: runs of
a program with 200 locked packages, and of the same program without any, in turn.
"""

import argparse
import functools
import hashlib
import http.server
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uv", default=shutil.which("uv"))
    parser.add_argument("--sheaf")
    parser.add_argument("--starts", action="store_true", help="only the starts of --sheaf")
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        rows = []
        if not options.starts:
            ours = sheaf(folder / "graph.json")
            graph = json.loads((folder / "graph.json").read_text())
            rows += [(f"Sheaf: {name}", times) for name, times in ours]
            rows += cargo(folder / "cargo", graph, options.runs)
            if options.uv:
                rows += uv(folder / "uv", graph, str(Path(options.uv).absolute()), options.runs)
        if options.sheaf:
            rows += starts(folder / "starts", str(Path(options.sheaf).absolute()))
        print("| what | ms | quickest run, ms |\n|---|---|---|")
        for name, times in rows:
            print(f"| {name} | {statistics.median(times):.3g} | {min(times):.3g} |")


def sheaf(graph):
    """The figures of the bench, which writes the registry to `graph`."""
    command = ["cargo", "bench", "--offline", "-p", "sheaf-registry", "--bench", "packages", "--", "--graph", str(graph)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    return [(name, (float(quickest), float(median), float("inf"))) for name, median, quickest in lines]


# Packages of the starts: roots, and dependencies of each.
ROOTS, EACH = 20, 9

# Runs of each program of the starts.
STARTS = 41


def starts(folder, program):
    """Whole runs of a program with 200 locked packages, and of the same program without any; and their differences, pair by pair."""
    folder.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "SHEAF_HOME": str(folder / "home"),
                   "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@author.example"}

    def run(*command, cwd=folder):
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{command}: {done.stderr}")
        return done.stdout

    index = folder / "index"
    run(program, "registry", "init", str(index))
    environment["SHEAF_REGISTRY"] = str(index)
    roots = [f"root-{root:02}" for root in range(ROOTS)]
    leaves = {root: [f"{root}-leaf-{leaf}" for leaf in range(EACH)] for root in roots}
    for name in [leaf for root in roots for leaf in leaves[root]] + roots:
        place = folder / name
        (place / "src").mkdir(parents=True)
        needs = "".join(f'{leaf} = "1"\n' for leaf in leaves.get(name, []))
        (place / "Sheaf.toml").write_text(
            f'[package]\nname = "{name}"\nversion = "1.0.0"\nlicense = "MIT"\ndescription = "A"\n'
            f'repository = "{place}"\n\n[dependencies]\n{needs}')
        (place / "src" / "lib.shf").write_text("(defn twice [x] (* 2 x))\n")
        for module in range(7):
            (place / "src" / f"module-{module}.shf").write_text("(def value 1)\n" * 250)
        for step in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "first"], ["tag", "v1.0.0"]):
            run("git", *step, cwd=place)
        run(program, "publish", "--no-test", cwd=place)
    programs = {}
    for name, needs in (("with", "".join(f'{root} = "1"\n' for root in roots)), ("without", "")):
        place = folder / name
        (place / "src").mkdir(parents=True)
        (place / "Sheaf.toml").write_text(f'[package]\nname = "demo"\n\n[dependencies]\n{needs}')
        (place / "src" / "main.shf").write_text("(use root-00)\n(print (twice 21))\n")
        if not needs:
            (place / "src" / "root-00.shf").write_text("(defn twice [x] (* 2 x))\n")
        if run(program, "run", cwd=place) != "42\n":
            sys.exit(f"{place}: another result")
        programs[name] = place
    if (programs["with"] / "Sheaf.lock").read_text().count("[[package]]") != ROOTS * (EACH + 1):
        sys.exit("another number of packages")
    times = {name: [] for name in programs}
    for _ in range(STARTS):
        for name, place in programs.items():
            times[name] += timed([program, "run"], 1, cwd=place, env=environment)
    more = [a - b for a, b in zip(times["with"], times["without"])]
    return [("Sheaf: a run with 200 locked packages, the process", times["with"]),
            ("the same program without packages, the process", times["without"]),
            ("the difference, pair by pair", more)]


def timed(command, runs, before=lambda: None, **how):
    """The times of a command."""
    times = []
    for _ in range(runs):
        before()
        begun = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, **how)
        times.append((time.perf_counter() - begun) * 1e3)
        if done.returncode:
            sys.exit(f"{command}: {done.stderr}")
    return times


def cargo(folder, graph, runs):
    """Resolutions by cargo without a lock: from a folder (`local-registry`), and from a git index that it updates first."""
    index = folder / "local" / "index"
    for name, versions in graph["packages"].items():
        path = index / name[:2] / name[2:4] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(cargo_line(name, *version) + "\n" for version in versions))
    project = folder / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "lib.rs").write_text("")
    wants = "".join(f'{name} = {{ version = "{needs}", registry = "bench" }}\n' for name, needs in graph["roots"])
    manifest = f'[package]\nname = "bench"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n{wants}\n[workspace]\n'
    (project / "Cargo.toml").write_text(manifest)
    lock = project / "Cargo.lock"
    environment = {**os.environ, "CARGO_HOME": str(folder / "home")}
    forget = functools.partial(lock.unlink, missing_ok=True)
    generate = ["cargo", "generate-lockfile", "--quiet"]

    git_index = folder / "index"
    shutil.copytree(index, git_index)
    (git_index / "config.json").write_text('{"dl": "http://127.0.0.1:9/"}')
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@author.example"]
    for step in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "index"]):
        subprocess.run([*git, *step], cwd=git_index, check=True)
    home = folder / "home"
    home.mkdir()
    registry = f'[registries.bench]\nindex = "file://{git_index}"\n'
    (home / "config.toml").write_text(registry)
    updated = timed(generate, runs, forget, cwd=project, env=environment)
    packages = lock.read_text().count("[[package]]") - 1
    local = f'{registry}[source.bench]\nregistry = "file://{git_index}"\nreplace-with = "local"\n'
    (home / "config.toml").write_text(f'{local}[source.local]\nlocal-registry = "{folder / "local"}"\n')
    warm = timed([*generate, "--offline"], runs, forget, cwd=project, env=environment)
    rest = timed(["cargo", "metadata", "--offline", "--locked", "--format-version=1", "--no-deps"], runs, cwd=project,
                 env=environment)
    version = subprocess.run(["cargo", "--version"], capture_output=True, text=True).stdout.split()[1]
    return [
        (f"cargo {version}: generate-lockfile --offline, local-registry ({packages} packages)", warm),
        (f"cargo {version}: generate-lockfile, git index in a folder, looked at for news", updated),
        (f"cargo {version}: metadata --no-deps --locked, nothing to do", rest),
    ]


def cargo_line(name, version, needs):
    dependencies = [
        {"name": other, "req": needed, "features": [], "optional": False, "default_features": True, "target": None,
         "kind": "normal"}
        for other, needed in needs
    ]
    return json.dumps({"name": name, "vers": version, "deps": dependencies, "cksum": "0" * 64, "features": {}, "yanked": False})


def uv(folder, graph, program, runs):
    """Resolutions by uv from an index on loopback: with its cache, and asking the index whether the cache is fresh."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Simple, graph["packages"]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder.mkdir()
    (folder / "wants.in").write_text("".join(f"{name}{specifier(needs)}\n" for name, needs in graph["roots"]))
    compile_ = [program, "pip", "compile", "--quiet", "--no-config", "--cache-dir", str(folder / "cache"), "--no-header",
                "--python", sys.executable, "--index-url", f"http://127.0.0.1:{server.server_port}/simple", "wants.in"]
    output = ["-o", "wants.txt"]
    forget = functools.partial((folder / "wants.txt").unlink, missing_ok=True)
    cold = timed([*compile_, *output], 1, forget, cwd=folder)
    warm = timed([*compile_, *output, "--offline"], runs, forget, cwd=folder)
    packages = sum(1 for line in (folder / "wants.txt").read_text().splitlines() if re.match(r"package-\d", line))
    asked = timed([*compile_, *output, "--refresh"], min(runs, 3), forget, cwd=folder)
    server.shutdown()
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()[1]
    return [
        (f"uv {version}: pip compile --offline, cached ({packages} packages)", warm),
        (f"uv {version}: pip compile, nothing cached, http index of Python's", cold),
        (f"uv {version}: pip compile --refresh, same index", asked),
    ]


def specifier(needs):
    """A range of cargo's as Python writes it; the graph has `^1`, `^1.n` and `>=1.a, <1.b`."""
    if needs.startswith("^"):
        return f">={needs[1:]},<2"
    return needs.replace(" ", "")


class Simple(http.server.BaseHTTPRequestHandler):
    """An index with metadata beside the files, which are never asked for."""

    protocol_version = "HTTP/1.1"

    def __init__(self, packages, *rest):
        self.packages = packages
        super().__init__(*rest)

    def do_GET(self):
        parts = self.path.strip("/").split("/")
        if parts[0] == "simple" and len(parts) == 2 and parts[1] in self.packages:
            return self.page(parts[1])
        match = re.fullmatch(r"(package_\d+)-([\d.]+)-py3-none-any\.whl\.metadata", parts[-1])
        if match is None:
            return self.reply(404, "text/plain", b"")
        name, version = match[1].replace("_", "-"), match[2]
        needs = next(needs for other, needs in self.packages[name] if other == version)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {other}{specifier(needed)}" for other, needed in needs]
        self.reply(200, "text/plain", ("\n".join(lines) + "\n").encode())

    def page(self, name):
        files = [f"{name.replace('-', '_')}-{version}-py3-none-any.whl" for version, _ in self.packages[name]]
        # uv takes files of one digest for one file.
        entries = [{"filename": file, "url": f"/files/{file}", "core-metadata": True,
                    "hashes": {"sha256": hashlib.sha256(file.encode()).hexdigest()}} for file in files]
        body = {"meta": {"api-version": "1.0"}, "name": name, "files": entries}
        self.reply(200, "application/vnd.pypi.simple.v1+json", json.dumps(body).encode())

    def reply(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("cache-control", "max-age=600")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    main()
