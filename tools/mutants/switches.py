"""Builds changes into Rust sources, each behind a switch: `if on(17) { changed } else { as it was }`.

Around each changed text are the comments `/*<17*/` and `/*17>*/`. So when the compiler rejects something, its place shows
which change it belongs to.
"""

import re

import tree_sitter
import tree_sitter_rust

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
MARK = re.compile(rb"/\*<(\d+)\*/|/\*(\d+)>\*/")
SWITCH = re.compile(rb"::api::mutants::on\((\d+)\)")


class Source:
    """A file, and its changes as cargo-mutants lists them."""

    def __init__(self, text, changes):
        self.text = text
        self.root = PARSER.parse(text).root_node
        lines = text.decode().splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line.encode()))

        def offset(at):
            before = lines[at["line"] - 1][: at["column"] - 1] if at["line"] <= len(lines) else ""
            return starts[at["line"] - 1] + len(before.encode())

        # By what is rewritten: where it is (outer first), its node, its changes.
        self.edits = {}
        self.without_place = set()
        self.in_constants = set()
        self.const_functions = {}  # by name: the place of the word `const`
        for number, change in changes.items():
            span = offset(change["span"]["start"]), offset(change["span"]["end"])
            node = self.find(change["genre"], span)
            if node is None:
                self.without_place.add(number)
                continue
            if is_in_constant(node):
                self.in_constants.add(number)
                continue
            rank = list(REWRITE).index(change["genre"])
            where = span if change["genre"] == "FnValue" else (node.start_byte, node.end_byte)
            key = where[0], -where[1], min(rank, 2 if node.type == "match_pattern" else rank)
            self.edits.setdefault(key, (node, []))[1].append((number, change))
            self.find_const(node)

    def find(self, genre, span):
        """The node that is rewritten for a change at this place."""
        node = self.root.descendant_for_byte_range(span[0], max(span[0], span[1] - 1))
        wanted = {
            "BinaryOperator": ["binary_expression", "compound_assignment_expr"],
            "UnaryOperator": ["unary_expression"],
            "MatchArm": ["match_arm"],
            "MatchArmGuard": ["match_pattern"],
            "StructField": ["field_initializer", "shorthand_field_initializer"],
            "FnValue": ["function_item"],
        }[genre]
        while node is not None and node.type not in wanted:
            node = node.parent
        if node is not None and genre == "MatchArm":
            return node.child_by_field_name("pattern") if any(map(catches_all, node.parent.children)) else None
        return node

    def find_const(self, node):
        """A `const fn` cannot look at a switch, so it becomes a `fn`."""
        while node is not None and node.type != "function_item":
            node = node.parent
        for child in node.children if node is not None else []:
            if child.type == "function_modifiers" and child.text.startswith(b"const"):
                name = node.child_by_field_name("name").text.decode()
                numbers = self.const_functions.setdefault(name, (child.start_byte, set()))[1]
                inside = [edit for edit in self.edits.values() if node.start_byte <= edit[0].start_byte < node.end_byte]
                numbers.update(number for edit in inside for number, _ in edit[1])

    def with_switches(self, left_out, const):
        """The text with every change but those left out; functions of these names stay `const`."""
        self.left_out = left_out
        no_const = {(at, -(at + 5), 0): (None, []) for name, (at, _) in self.const_functions.items() if name not in const}
        return self.render(0, len(self.text), sorted((self.edits | no_const).items(), key=lambda edit: edit[0]))

    def render(self, start, end, edits):
        """A part of the text, with the edits in it."""
        out = b""
        inside = [edit for edit in edits if start <= edit[0][0] and -edit[0][1] <= end]
        while inside:
            ((first, minus_last, _), (node, changes)), *inside = inside
            last = -minus_last
            nested = [edit for edit in inside if edit[0][0] < last]
            inside = inside[len(nested) :]

            def inner(part=None, place=(first, last), nested=nested):
                return self.render(*((part.start_byte, part.end_byte) if part else place), nested)

            out += self.text[start:first]
            start = last
            changes = [change for change in changes if change[0] not in self.left_out]
            if changes:
                out += REWRITE[changes[0][1]["genre"]](node, changes, inner)
            elif node is not None:  # else it is the word `const`
                out += inner()
        return out + self.text[start:end]


def catches_all(arm):
    """Whether this arm of a match takes whatever the others leave."""
    return arm.type == "match_arm" and re.fullmatch(rb"_|[a-z]\w*", arm.child_by_field_name("pattern").text)


def is_in_constant(node):
    while node is not None and node.type != "function_item":
        if node.type in ("const_item", "static_item"):
            return True
        node = node.parent
    return False


def on(number):
    return b"::api::mutants::on(%d)" % number


def marked(number, text):
    return b"/*<%d*/%b/*%d>*/" % (number, text, number)


def choice(node, changes, inner):
    """A choice among expressions: `changes` are numbers and texts."""
    cases = b"".join(b"if %b { %b } else " % (on(number), marked(number, text)) for number, text in changes)
    return b"(%b{ %b })" % (cases, inner)


def body(node, changes, inner):
    texts = [(number, change["replacement"].encode() or b"()") for number, change in changes]
    if "impl Iterator" not in changes[0][1]["function"]["return_type"]:
        cases = (b"if %b { return %b; } " % (on(number), marked(number, text)) for number, text in texts)
        return b"".join(cases) + inner()
    out = inner()  # two kinds of iterators have two types
    for number, text in texts:
        first, second = b"::api::mutants::Either::First(%b)" % marked(number, text), b"{ %b }" % out
        out = b"if %b { %b } else { ::api::mutants::Either::Second(%b) }" % (on(number), first, second)
    return out


def operator(node, changes, inner):
    left, sign, right = node.child_by_field_name("left"), node.child_by_field_name("operator"), node.child_by_field_name("right")
    if sign is None:
        sign = next(child for child in node.children if not child.is_named)

    def text(between):
        return b"%b %b %b" % (inner(left), between, inner(right))

    return choice(node, [(number, text(change["replacement"].encode())) for number, change in changes], text(sign.text))


def without_operator(node, changes, inner):
    sign, operand = node.children[0], node.children[-1]
    return choice(node, [(number, inner(operand)) for number, _ in changes], sign.text + inner(operand))


def arm(node, changes, inner):
    """An arm is deleted, or its guard is replaced: both by its guard."""
    condition = node.child_by_field_name("condition")
    pattern = node.children[0]
    guard = condition and inner(condition)
    for number, change in changes:
        switch = marked(number, on(number))
        if change["genre"] == "MatchArmGuard" and change["replacement"] == "true":
            guard = b"(%b || (%b))" % (switch, guard)
        elif guard is None:
            guard = b"!" + switch
        else:
            in_brackets = guard if condition.type.startswith("let") else b"(%b)" % guard
            guard = b"!%b && %b" % (switch, in_brackets)
    return b"%b if %b" % (inner(pattern), guard)


def field(node, changes, inner):
    """A field that is left out has the value of the base."""
    [(number, _)] = changes
    base = next(child for child in node.parent.children if child.type == "base_field_initializer").children[-1]
    name = node.child_by_field_name("field") or node.children[0]
    value = node.child_by_field_name("value") or node.children[0]
    kind = node.parent.parent.child_by_field_name("name").text
    default = b"let base: %b = %b; base.%b" % (kind, base.text, name.text)
    return b"%b: %b" % (name.text, choice(node, [(number, default)], inner(value)))


# Outer ones first, where two are at the same place.
REWRITE = {
    "FnValue": body,
    "StructField": field,
    "MatchArm": arm,
    "MatchArmGuard": arm,
    "UnaryOperator": without_operator,
    "BinaryOperator": operator,
}


def changes_at(text, start, end):
    """The innermost change around a place of a text with switches; else those inside of it."""
    switch = SWITCH.fullmatch(text, start, end)
    if switch:
        return {int(switch[1])}
    around, inside = [], set()
    for mark in MARK.finditer(text):
        if mark.start() >= end:
            break
        if mark.start() < start:
            around.append(int(mark[1])) if mark[1] else around.pop()
        elif mark[1]:
            inside.add(int(mark[1]))
    return {around[-1]} if around else inside
