"""`completion`: scripts for bash, zsh and fish, generated from the command tree."""

from __future__ import annotations

import argparse
import shlex
from typing import Final

from rowsmith.cli import parser as tree
from rowsmith.cli.parser import Branch
from rowsmith.cli.problems import OK
from rowsmith.cli.work import Work

SHELLS: Final = ("bash", "zsh", "fish")


def add(root: Branch) -> None:
    """Add the command to the parser."""
    made = root.leaf(
        "completion",
        completion,
        "Print the script that enables shell completion for this command.",
        "The guide says where to install it.",
    )
    made.add_argument("shell", choices=SHELLS, help="The shell.")


def completion(work: Work) -> int:
    """Print the script."""
    text = script(work.args.shell, tree.build())
    work.console.result({"shell": work.args.shell, "script": text}, text.rstrip("\n"))
    return OK


def script(shell: str, root: argparse.ArgumentParser) -> str:
    """Return the completion script of a shell."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](root)


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """Return what can follow a command: subcommands, choices of a positional argument, options."""
    made = list(tree.subcommands(parser))
    for action in tree.operands(parser):
        made += [str(choice) for choice in action.choices or ()]
    for action in tree.options(parser):
        made += action.option_strings
    return [*made, "--help"]


def _values(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Return the choices of each option, without options that accept any value."""
    return {
        name: [str(choice) for choice in action.choices or ()]
        for action in tree.options(parser)
        if action.nargs != 0
        for name in action.option_strings
    }


def _takes_files(parser: argparse.ArgumentParser) -> bool:
    return any(tree.is_file(action) for action in tree.operands(parser))


_BASH: Final = """# bash completion of rowsmith; made by `rowsmith completion bash`
_rowsmith() {
    local cur prev path word i
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD-1]}
    path=
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case "$path $word" in
%(paths)s
        esac
    done
    COMPREPLY=()
    case "$path:$prev" in
%(values)s
    esac
    case "$path" in
%(words)s
    esac
}
complete -F _rowsmith rowsmith
"""


def _bash(root: argparse.ArgumentParser) -> str:
    paths, values, words = [], [], []
    for path, parser in tree.walk(root):
        here = " ".join(path)
        if path:
            before = " ".join(path[:-1])
            paths.append(f'        "{before} {path[-1]}") path="{here}" ;;')
        for option, choices in _values(parser).items():
            action = next(item for item in tree.options(parser) if option in item.option_strings)
            if choices:
                made = f"COMPREPLY=($(compgen -W '{' '.join(choices)}' -- \"$cur\"))"
            else:
                made = 'COMPREPLY=($(compgen -f -- "$cur"))' if tree.is_file(action) else ":"
            values.append(f'    "{here}:{option}") {made}; return ;;')
        files = ' COMPREPLY+=($(compgen -f -- "$cur"))' if _takes_files(parser) else ""
        message = f"COMPREPLY=($(compgen -W '{' '.join(_words(parser))}' -- \"$cur\"));{files}"
        words.append(f'    "{here}") {message} ;;')
    return _BASH % {"paths": "\n".join(paths), "values": "\n".join(values), "words": "\n".join(words)}


_ZSH: Final = """#compdef rowsmith
# zsh completion of rowsmith; made by `rowsmith completion zsh`
_rowsmith() {
    local path_= word i
    local -a found
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        case "$path_ $word" in
%(paths)s
        esac
    done
    case "$path_:${words[CURRENT-1]}" in
%(values)s
    esac
    case "$path_" in
%(words)s
    esac
    _describe -t commands 'rowsmith' found
}
if [ "$funcstack[1]" = "_rowsmith" ]; then _rowsmith "$@"; else compdef _rowsmith rowsmith; fi
"""


def _zsh(root: argparse.ArgumentParser) -> str:
    paths, values, words = [], [], []
    for path, parser in tree.walk(root):
        here = " ".join(path)
        if path:
            paths.append(f'        "{" ".join(path[:-1])} {path[-1]}") path_="{here}" ;;')
        for option, choices in _values(parser).items():
            action = next(item for item in tree.options(parser) if option in item.option_strings)
            made = f"compadd -- {' '.join(choices)}" if choices else "_files" if tree.is_file(action) else ":"
            values.append(f'    "{here}:{option}") {made}; return ;;')
        message = "\n".join(
            f"            {shlex.quote(_zsh_word(name, text))}" for name, text in _described(parser)
        )
        files = "; _files" if _takes_files(parser) else ""
        words.append(f'    "{here}")\n        found=(\n{message}\n        ){files} ;;')
    return _ZSH % {"paths": "\n".join(paths), "values": "\n".join(values), "words": "\n".join(words)}


def _zsh_word(name: str, text: str) -> str:
    return name.replace(":", r"\:") + (f":{text}" if text else "")


def _described(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    made = list(tree.summaries(parser).items())
    for action in tree.operands(parser):
        made += [(str(choice), "") for choice in action.choices or ()]
    for action in tree.options(parser):
        made += [(name, action.help or "") for name in action.option_strings]
    return made


def _fish(root: argparse.ArgumentParser) -> str:
    out = [
        "# fish completion of rowsmith; made by `rowsmith completion fish`",
        "function __rowsmith_at",
        "    set -l words (commandline -opc) ; set -e words[1]",
        "    set -l path",
        "    for word in $words",
        '        if contains -- (string join " " -- $path $word) $__rowsmith_paths',
        "            set path $path $word",
        "        end",
        "    end",
        '    test "$path" = "$argv[1]"',
        "end",
        "complete -c rowsmith -f",
    ]
    paths = [" ".join(path) for path, _ in tree.walk(root) if path]
    out.insert(1, "set -g __rowsmith_paths " + " ".join(_quoted(item) for item in paths))
    for path, parser in tree.walk(root):
        here = f"complete -c rowsmith -n {_quoted('__rowsmith_at ' + _quoted(' '.join(path)))}"
        for name, text in tree.summaries(parser).items():
            out.append(f"{here} -a {_quoted(name)} -d {_quoted(text)}")
        chosen = [action.choices for action in tree.operands(parser) if action.choices]
        out += [f"{here} -a {_quoted(' '.join(str(choice) for choice in choices))}" for choices in chosen]
        if _takes_files(parser):
            out.append(f"{here} -F")
        out += [f"{here} {_fish_option(action)}" for action in tree.options(parser)]
    return "\n".join(out) + "\n"


def _fish_option(action: argparse.Action) -> str:
    made = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in action.option_strings]
    if action.nargs != 0:
        made.append("-r -F" if tree.is_file(action) else "-x")
        if action.choices:
            made.append(f"-a {_quoted(' '.join(str(choice) for choice in action.choices))}")
    return " ".join([*made, f"-d {_quoted(action.help or '')}"])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
