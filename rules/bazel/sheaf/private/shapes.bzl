"""`sheaf_shapes`: the calls of shapes files, for the rules to declare an action for each."""

def _sheaf_shapes_impl(rctx):
    calls = {}
    for label in rctx.attr.files:
        # The repository is made again when the file changes.
        shapes = json.decode(rctx.read(rctx.path(label)))
        if not shapes.get("format", "").startswith("sheaf shapes "):
            fail("%s is no shapes file: record it with `sheaf run PROGRAM --record`" % label)
        calls["//%s:%s" % (label.package, label.name)] = [call["function"] for call in shapes["calls"]]
    rctx.file("BUILD.bazel", "")
    rctx.file("calls.bzl", '"""Calls of shapes files, by label."""\n\nCALLS = %s\n' % repr(calls))

sheaf_shapes = repository_rule(
    implementation = _sheaf_shapes_impl,
    doc = "Reads shapes files: `CALLS` of its `calls.bzl` has the names of the calls of each.",
    attrs = {
        "files": attr.label_list(
            doc = "The shapes files.",
            allow_files = [".json"],
            mandatory = True,
        ),
    },
)
