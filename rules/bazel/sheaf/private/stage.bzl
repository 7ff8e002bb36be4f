"""Staging: sources, data and packages of a program as files in a folder of their own, as its package has them."""

# The inputs of an action may be links out of its folder, and `sheaf` looks for modules beside the real files. Arguments: the number
# of files, then for each the path and its place. The rest is for the command.
_STAGE = """
set -eu
root=$PWD
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
files=$1
shift
while [ "$files" -gt 0 ]; do
    case $2 in */*) mkdir -p "$stage/source/${2%/*}" ;; *) mkdir -p "$stage/source" ;; esac
    cp -L "$1" "$stage/source/$2"
    files=$((files - 1))
    shift 2
done
# What the user's own configuration says has no effect on a build.
export SHEAF_HOME="$stage/home"
"""

def _places(info):
    """The files of a program, each with its place in the stage."""
    files = depset(transitive = [info.sources, info.data]).to_list()
    places = [(file, file.short_path) for file in files]
    packages = info.packages.to_list()
    if packages:
        locks = [file for file in files if file.basename == "Sheaf.lock"]
        if len(locks) != 1:
            fail("packages are those of one Sheaf.lock among the sources; there are %d" % len(locks))
        folder = locks[0].short_path.rpartition("/")[0]
        places += [(file, (folder + "/" if folder else "") + "vendor/" + file.basename) for file in packages]
    return places

def run_staged(ctx, info, command, arguments, inputs, tools, outputs, **kwargs):
    """Runs a command of the shell, in which `$stage/source` has the files of a program.

    Args:
      ctx: the context of the rule.
      info: the SheafInfo of the program.
      command: the text; `$root` is the folder of the paths of its arguments.
      arguments: its arguments, texts or files.
      inputs: files besides those of the program.
      tools: executables.
      outputs: its results.
      **kwargs: the mnemonic and the message.
    """
    places = _places(info)
    args = ctx.actions.args()
    args.add(str(len(places)))
    for file, place in places:
        args.add(file)
        args.add(place)
    args.add_all(arguments)
    ctx.actions.run_shell(
        command = _STAGE + command,
        arguments = [args],
        inputs = [file for file, _ in places] + inputs,
        tools = tools,
        outputs = outputs,
        **kwargs
    )
