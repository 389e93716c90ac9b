"""Changes planner and runtime in every small way that cargo-mutants knows, and prints which change no test notices.

    run.py [PATH...]    only changes in these files and folders

All changes are built into one program, each behind a switch. A first run shows which tests reach which change; only those
are run for it. The stories run without faults, since what only faults notice is noticed too late.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

import switches
import trial

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
SCRATCH = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "mutants"
COPY = SCRATCH / "copy"
CONFIG = tomllib.loads((ROOT / ".cargo/mutants.toml").read_text())
PACKAGES = [argument for package in CONFIG["test_package"] for argument in ("--package", package)]
TESTS = CONFIG["additional_cargo_test_args"]


def listed(paths):
    """The changes by number: 1, 2, 3 and so on."""
    command = ["cargo", "mutants", "--list", "--json", "--config", ".cargo/mutants.toml", *PACKAGES]
    changes = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    if paths:
        changes = [change for change in changes if change["file"].startswith(tuple(paths))]
    return dict(enumerate(changes, 1))


def copy():
    shutil.rmtree(COPY, ignore_errors=True)
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    for file in files.decode().split("\0"):
        if file and (ROOT / file).is_file():
            (COPY / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, COPY / file)
    library = COPY / "crates/api/src/lib.rs"
    library.write_text(library.read_text() + "\n#[allow(missing_docs)]\npub mod mutants;\n")
    shutil.copy(HERE / "mutants.rs", library.parent)


def cargo(*arguments):
    """What cargo reports, as JSON."""
    environment = {"CARGO_TARGET_DIR": str(SCRATCH / "target"), "CARGO_INCREMENTAL": "0", "RUSTFLAGS": "-Awarnings"}
    command = ["cargo", *arguments, *PACKAGES, "--message-format=json"]
    done = subprocess.run(command, cwd=COPY, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode and not any(is_error(message) for message in messages):
        sys.exit(done.stderr)
    return messages


def is_error(message):
    return message["reason"] == "compiler-message" and message["message"]["level"] == "error"


class Build:
    """The copy with its switches."""

    def __init__(self, changes):
        self.changes = changes
        files = {change["file"] for change in changes.values()}
        self.sources = {file: self.source(file) for file in files}
        self.rejected = set().union(*(source.without_place for source in self.sources.values()))
        self.in_constants = set().union(*(source.in_constants for source in self.sources.values()))
        self.const = set()

    def source(self, file):
        own = {number: change for number, change in self.changes.items() if change["file"] == file}
        return switches.Source((ROOT / file).read_bytes(), own)

    def write(self):
        for file, source in self.sources.items():
            text = source.with_switches(self.rejected | self.in_constants, self.const)
            if (COPY / file).read_bytes() != text:
                (COPY / file).write_bytes(text)

    def until_it_compiles(self):
        """Leaves out what the compiler rejects. Returns the test programs."""
        for arguments in [["check"], ["test", "--no-run", *TESTS]]:
            while True:
                self.write()
                messages = cargo(*arguments)
                errors = [message["message"] for message in messages if is_error(message) and message["message"]["spans"]]
                if not errors:
                    break
                before = len(self.rejected), len(self.in_constants)
                for error in errors:
                    self.leave_out(error)
                if before == (len(self.rejected), len(self.in_constants)):
                    sys.exit("".join(error["rendered"] for error in errors[:5]))
                print(f"{len(self.rejected)} changes do not compile", file=sys.stderr)
        return {
            message["executable"]: pathlib.Path(message["manifest_path"]).parent
            for message in messages
            if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]
        }

    def leave_out(self, error):
        is_constant = (error["code"] or {}).get("code") == "E0015"
        for span in sorted(error["spans"], key=lambda span: not span["is_primary"]):
            if span["file_name"] not in self.sources:
                continue
            text = (COPY / span["file_name"]).read_bytes()
            found = switches.changes_at(text, span["byte_start"], span["byte_end"])
            if found and not (is_constant and b"mutants::on" not in text[span["byte_start"] : span["byte_end"]]):
                (self.in_constants if is_constant else self.rejected).update(found)
                return
        if is_constant:
            name = error["message"].split("`")[1].rsplit("::")[-1]
            self.const.add(name)
            for source in self.sources.values():
                self.in_constants |= source.const_functions.get(name, (0, set()))[1]


def main():
    changes = listed(sys.argv[1:])
    copy()
    build = Build(changes)
    programs = build.until_it_compiles()
    tests = trial.reached(programs, SCRATCH / "reached")
    tried = [number for number in changes if number not in build.rejected | build.in_constants]
    outcomes = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number, outcome in zip(tried, pool.map(lambda number: trial.outcome(number, changes[number], tests), tried)):
            outcomes[outcome] += 1
            if outcome not in ("noticed", "endless"):
                print(f"{outcome}: {changes[number]['name']}", flush=True)
    print(f"{len(changes)} changes")
    print(f"{len(build.rejected)} do not compile")
    print(f"{len(build.in_constants)} are in constants, where a switch is not possible")
    print(f"{len(tried)} tried")
    for outcome, number in sorted(outcomes.items()):
        print(f"{number} {outcome}")


if __name__ == "__main__":
    main()
