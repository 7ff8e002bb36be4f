"""The repository of a toolchain: an archive of `sheaf`, and the compiler that it pins."""

_BUILD = """load("@rules_sheaf//sheaf:defs.bzl", "sheaf_toolchain")

package(default_visibility = ["//visibility:public"])

sheaf_toolchain(
    name = "sheaf",
    compiler = ":compiler",
    marker = "home/data/marker",
    runtime = "{runtime}",
    sheaf = "{sheaf}",
    store = "{store}",
)

filegroup(
    name = "compiler",
    srcs = glob(["home/data/toolchains/**"]),
)

exports_files(["{sheaf}"])

toolchain(
    name = "toolchain",
    exec_compatible_with = {constraints},
    toolchain = ":sheaf",
    toolchain_type = "@rules_sheaf//sheaf:toolchain_type",
)
"""

_PLATFORMS = {
    "linux-x86_64": ["@platforms//os:linux", "@platforms//cpu:x86_64"],
    "linux-aarch64": ["@platforms//os:linux", "@platforms//cpu:aarch64"],
    "macos-aarch64": ["@platforms//os:osx", "@platforms//cpu:aarch64"],
    "windows-x86_64": ["@platforms//os:windows", "@platforms//cpu:x86_64"],
}

def _platform(rctx):
    system = rctx.os.name.lower()
    kind = "macos" if system.startswith("mac") else "windows" if "windows" in system else "linux"
    arch = "x86_64"
    if kind == "macos":
        arch = "aarch64"
    elif kind == "linux":
        arch = rctx.execute(["uname", "-m"]).stdout.strip()
    return "%s-%s" % (kind, arch)

def _addresses(rctx, url):
    """A mirror has files by their names, so that any folder of a server serves."""
    mirrors = [m for m in rctx.os.environ.get("SHEAF_BAZEL_MIRRORS", "").split(",") if m] or rctx.attr.mirrors
    name = url.rpartition("/")[2]
    return [mirror.rstrip("/") + "/" + name for mirror in mirrors] + [url]

def _sheaf_toolchain_repository_impl(rctx):
    platform = rctx.attr.platform or _platform(rctx)
    if platform not in rctx.attr.sheaf:
        fail("sheaf_register_toolchains: no archive of sheaf for %s; `sheaf` has those for %s" % (platform, ", ".join(rctx.attr.sheaf.keys())))
    if platform not in rctx.attr.sha256:
        fail("sheaf_register_toolchains: `sha256` has no digest of the archive for %s" % platform)
    rctx.download_and_extract(
        _addresses(rctx, rctx.attr.sheaf[platform]),
        output = "bin",
        sha256 = rctx.attr.sha256[platform],
        stripPrefix = rctx.attr.strip_prefix,
    )
    suffix = ".exe" if platform.startswith("windows") else ""
    command = ["bin/sheaf" + suffix, "toolchain", "install"]
    if platform in rctx.attr.compiler:
        url = rctx.attr.compiler[platform]
        file = "compiler/" + url.rpartition("/")[2]
        if platform not in rctx.attr.compiler_sha256:
            fail("sheaf_register_toolchains: `compiler_sha256` has no digest of the compiler for %s" % platform)
        rctx.download(_addresses(rctx, url), output = file, sha256 = rctx.attr.compiler_sha256[platform])
        command += [file, "--offline"]

    # Without a file, `sheaf` fetches the wheel whose name and sha-256 are built into it.
    result = rctx.execute(command, environment = {"SHEAF_HOME": str(rctx.path("home"))}, timeout = 1200)
    if result.return_code != 0:
        fail("the compiler cannot be installed:\n" + result.stderr)
    rctx.delete("compiler")
    rctx.file("home/data/marker", "")
    rctx.file("BUILD.bazel", _BUILD.format(
        sheaf = "bin/sheaf" + suffix,
        runtime = "bin/sheaf-rt" + suffix,
        store = rctx.attr.store,
        constraints = repr(_PLATFORMS.get(platform, [])),
    ))

sheaf_toolchain_repository = repository_rule(
    implementation = _sheaf_toolchain_repository_impl,
    doc = "Fetches an archive with `sheaf` and `sheaf-rt`, and the compiler whose digests that `sheaf` has.",
    attrs = {
        "sheaf": attr.string_dict(
            doc = "Address of an archive with `sheaf` and `sheaf-rt` for each platform: linux-x86_64, linux-aarch64, macos-aarch64, windows-x86_64.",
            mandatory = True,
        ),
        "sha256": attr.string_dict(doc = "The archives' SHA-256.", mandatory = True),
        "strip_prefix": attr.string(doc = "A folder of the archives that is left out."),
        "compiler": attr.string_dict(
            doc = "Addresses of files that `sheaf toolchain bundle` wrote; without one, `sheaf` fetches its compiler as it always does.",
        ),
        "compiler_sha256": attr.string_dict(doc = "The SHA-256 of those files."),
        "mirrors": attr.string_list(
            doc = "Folders of servers that are asked first, for files of the same name. SHEAF_BAZEL_MIRRORS, with commas, takes their place.",
        ),
        "store": attr.string(
            doc = "A store of compiled programs, the absolute path of `cache` in a SHEAF_HOME: what it has is not compiled. With the option --sandbox_writable_path of Bazel, what is compiled is kept in it.",
        ),
        "platform": attr.string(doc = "The platform of the actions; by default that of this machine."),
    },
    environ = ["SHEAF_BAZEL_MIRRORS", "SHEAF_TOOLCHAIN_INDEX"],
)
