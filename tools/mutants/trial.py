"""Runs tests with one change on."""

import collections
import os
import resource
import signal
import subprocess
import sys
import threading

WITHOUT_FAULTS = {"NACRE_FAULTS": "0", "INSTA_UPDATE": "no", "RUST_BACKTRACE": "0"}
# A change can make a loop endless, and what it fills too.
MEMORY = 4 << 30
SECONDS = 20

Test = collections.namedtuple("Test", "program folder name seconds changes")


def start(program, folder, environment, arguments):
    return subprocess.Popen(
        [program, *arguments],
        cwd=folder,
        env=os.environ | WITHOUT_FAULTS | {"CARGO_MANIFEST_DIR": str(folder)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )


def reached(programs, file):
    """Every test that reaches a change, with the changes it reaches."""
    tests = []
    for program, folder in programs.items():
        file.unlink(missing_ok=True)
        process = start(program, folder, {"MUTANTS_REACHED": str(file)}, ["--test-threads=2"])
        output = process.communicate()[0]
        if process.returncode:
            sys.exit(f"without any change, tests fail:\n{output}")
        for line in file.read_text().splitlines() if file.exists() else []:
            name, seconds, *changes = line.split()
            tests.append(Test(program, folder, name, float(seconds), {int(change) for change in changes}))
    return tests


# How many changes of a file a test was the first to notice: the next change of that file is tried with it first.
NOTICED = collections.defaultdict(collections.Counter)


def outcome(number, change, tests):
    """Whether a test notices this change."""
    reaching = [test for test in tests if number in test.changes]
    if not reaching:
        return "not reached"
    good = NOTICED[change["file"]]
    reaching.sort(key=lambda test: (-good[test.name] / (test.seconds + 0.05), test.seconds))
    size = 4
    while reaching:
        chunk, reaching = reaching[:size], reaching[size:]
        size *= 4
        for program in dict.fromkeys(test.program for test in chunk):
            failed = first_failure(number, program, [test for test in chunk if test.program == program])
            if failed is not None:
                good[failed] += 1
                return "noticed" if failed else "endless"
    return "not noticed"


def first_failure(number, program, tests):
    """The name of the first test that fails; none if all pass, empty if they do not end."""
    arguments = ["--test-threads=1", "--exact", *(test.name for test in tests)]
    process = start(program, tests[0].folder, {"MUTANT": str(number)}, arguments)
    late = threading.Event()

    def stop():
        late.set()
        process.send_signal(signal.SIGKILL)

    timer = threading.Timer(SECONDS + 5 * sum(test.seconds for test in tests), stop)
    timer.start()
    name = ""
    try:
        for line in process.stdout:
            if line.startswith("test ") and " ... " in line:
                name = line.split()[1]
            if line.rstrip().endswith("FAILED") and name:
                return name
        return None if process.wait() == 0 else "" if late.is_set() else name or "?"
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
