"""The actions: one that lowers the recorded calls, one for each call that compiles it, one that links."""

load(":stage.bzl", "run_staged")

TOOLCHAIN = "@rules_sheaf//sheaf:toolchain_type"

CALL_ATTRS = {
    "main": attr.label(
        doc = "The program.",
        allow_single_file = [".shf"],
        mandatory = True,
    ),
    "shapes": attr.label(
        doc = "The shapes file, which `sheaf run --record` writes.",
        allow_single_file = [".json"],
        mandatory = True,
    ),
    "calls": attr.string_list(
        doc = "Names of the calls in the shapes file, in their order: `CALLS[\"//package:shapes.json\"]` of the repository that `sheaf_shapes` makes.",
        mandatory = True,
        allow_empty = False,
    ),
}

def _destination(target):
    """Options of the command for a target such as `cpu:x86-64-v3` or `cuda:sm_89`."""
    kind, _, name = target.partition(":")
    if kind != "cpu":
        return ["--device", target]
    if not name or name == "host":
        fail("the processor of a build has a name, as in cpu:x86-64-v3: the host's is another on each machine")
    return ["--device", "cpu", "--cpu", name]

def compile_calls(ctx, info, targets):
    """Compiles the recorded calls of a program, each in an action of its own.

    Args:
      ctx: the context of a rule with CALL_ATTRS.
      info: the SheafInfo of the program.
      targets: devices, such as `cpu:x86-64-v3` and `cuda:sm_89`.

    Returns:
      the folder of compiled functions.
    """
    tools = ctx.toolchains[TOOLCHAIN]
    link = ctx.actions.args()
    link.add_all(["step", "link"])
    options = ctx.actions.args()
    inputs = []
    for target in targets:
        base = "%s.lowered/%s" % (ctx.label.name, target.replace(":", "-"))
        described = ctx.actions.declare_file(base + "/calls.json")
        lowered = [ctx.actions.declare_file("%s/%d.json" % (base, n)) for n in range(len(ctx.attr.calls))]
        run_staged(
            ctx,
            info,
            command = 'sheaf=$root/$1 main=$2 shapes=$root/$3 output=$root/$4; shift 4; cd "$stage/source"; ' +
                      '"$sheaf" step lower "$main" --shapes "$shapes" --output "$output" --frozen "$@"',
            arguments = [tools.sheaf, ctx.file.main.short_path, ctx.file.shapes, described.dirname] + _destination(target),
            inputs = [ctx.file.shapes],
            tools = [tools.sheaf],
            outputs = [described] + lowered,
            mnemonic = "SheafLower",
            progress_message = "Lowering %s for %s" % (ctx.file.main.short_path, target),
        )
        link.add(described.dirname)
        inputs += [described] + lowered
        for n, call in enumerate(ctx.attr.calls):
            stem = "%s.compiled/%s/%d" % (ctx.label.name, target.replace(":", "-"), n)
            program = ctx.actions.declare_file(stem + ".vmfb")
            claim = ctx.actions.declare_file(stem + ".claim")
            step = ctx.actions.args()
            step.add_all(["step", "compile", lowered[n]])
            step.add("--program", program)
            step.add("--claim", claim)
            step.add("--compiler", tools.marker.dirname)
            if tools.store:
                step.add("--store", tools.store)
            ctx.actions.run(
                executable = tools.sheaf,
                arguments = [step],
                inputs = [lowered[n], tools.marker] + tools.compiler,
                outputs = [program, claim],
                mnemonic = "SheafCompile",
                progress_message = "Compiling %s of %s for %s" % (call, ctx.file.main.short_path, target),
            )
            options.add("--program", program)
            options.add("--claim", claim)
            inputs += [program, claim]
    folder = ctx.actions.declare_directory(ctx.label.name + ".sheaf")
    options.add("--output", folder.path)
    ctx.actions.run(
        executable = tools.sheaf,
        arguments = [link, options],
        inputs = inputs,
        outputs = [folder],
        mnemonic = "SheafLink",
        progress_message = "Linking %s" % ctx.label,
    )
    return folder
