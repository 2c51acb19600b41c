"""Reads a Relay module into graphs: plain nodes and edges, and who feeds whom.

Composite and external functions are read at each place where they are called, inside a box; so are
the regions between ``compiler_begin`` and ``compiler_end``, which are borders and no operators.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relay
from tvm.ir import GlobalVar

from byocviz.errors import ModuleError
from byocviz.flow.reading import Origin, Reading, Site, Value
from byocviz.flow.relay.boxes import Boxes
from byocviz.flow.relay.compat import (
    BEGIN,
    END,
    attribute,
    functions_of,
    key_of,
    plain,
)
from byocviz.flow.relay.regions import Regions
from byocviz.flow.relay.scopes import Bodies, Item, Param
from byocviz.flow.relay.values import Typed, spread, through
from byocviz.recording.schema import Edge, Node

MOST_INLINED = 200_000
"""More calls of composite and external functions than this are refused: a module in which each
function calls the one before twice would unfold without end."""

MOST_LEAVES = 10_000
"""Tensors of a tuple: one that holds the one before twice, and so on, would unfold without end."""


def read_module(
    module: tvm.IRModule,
    entry: str,
    *,
    outlined: bool = False,
    uncalled: frozenset[str] | None = None,
    bodies: Bodies | None = None,
) -> list[Reading]:
    """Read every Relay function that is not drawn inside another, the entry first.

    ``outlined`` draws external functions by themselves and their calls as single nodes.
    ``uncalled`` names the composite and external functions that are read even if nothing calls
    them: those that were given. None reads them all. ``bodies`` keeps what was read of functions.
    """
    functions = functions_of(module)
    boxed = {
        name
        for name, function in functions.items()
        if attribute(function, "Composite") or attribute(function, "Compiler")
    }
    reader = Reader(functions, boxed, outlined, bodies or Bodies())
    own = sorted((n for n in functions if n not in boxed), key=lambda n: (n != entry, n))
    readings = [reader.read(name) for name in own]
    if outlined:
        called = {site.function for reading in readings for site in reading.sites}
        readings += [reader.read(name) for name in sorted(called)]
    left = boxed - reader.drawn
    readings += [reader.read(n) for n in sorted(left) if uncalled is None or n in uncalled]
    return readings


class Reader:
    def __init__(
        self, functions: dict[str, Any], boxed: set[str], outlined: bool, bodies: Bodies
    ) -> None:
        self.functions = functions
        self.bodies = bodies
        self.compilers = {
            name: plain(compiler)
            for name in boxed
            if (compiler := attribute(functions[name], "Compiler"))
        }
        self.boxed = boxed
        self.outlined = outlined
        self.drawn: set[str] = set()
        self.inlined = 0

    def read(self, name: str) -> Reading:
        self.r = Reading(name)
        self.nodes = self.r.graph.nodes
        self.edges = self.r.graph.edges
        self.home = name
        self.rule = ""
        self.site = -1
        function = self.functions[name]
        # What an external function calls is part of it, an external function too.
        self.within = name in self.compilers
        self.block_count = 0
        self.region_count = 0
        self.block = 0
        self.env: dict[int, Value] = {}
        self.drawn.add(name)
        for param in self.bodies.params(function):
            self.param(param, -1)
        result = _Frame(self, function, -1).run()
        self.feed(result, self.node("output", "result", -1))
        self.r.results += [leaf.origin for leaf in result.leaves()]
        return self.r

    def node(self, kind: str, label: str, parent: int, type_: str = "", callee: str = "") -> int:
        self.nodes.append(Node(kind, plain(label), [], parent, type_, plain(callee)))
        return len(self.nodes) - 1

    def param(self, param: Param, parent: int) -> None:
        node = self.node("param", param.name, parent, self.bodies.types.text(param.ty))
        self.env[param.key] = spread(node, None, param.ty, param.var, param.name)

    def feed(self, value: Value, node: int, slot: int = 0) -> int:
        """Draw the edges of one argument; returns the next free slot."""
        for leaf in value.leaves():
            if leaf.node >= 0:
                self.edges.append(Edge(leaf.node, node, slot, leaf.out))
                slot += 1
        return slot


class _Frame:
    """One body, as it is read in one place: of a function, or inlined at a call."""

    def __init__(self, reader: Reader, function: Any, parent: int) -> None:
        self.reader = reader
        self.r = reader.r
        self.parent = parent
        self.body = reader.bodies.of(function)
        self.values: dict[int, Value] = {}
        self.constants: dict[tuple[int, int], int] = {}
        self.boxes = Boxes(reader, self.body, parent)
        self.blocks: dict[int, int] = {}
        self.regions = Regions(self.body) if reader.site < 0 and not reader.within else None
        self.sites: dict[int, int] = {}
        self.borders: dict[int, set[int]] = {}

    def run(self) -> Value:
        for item in self.body.items.values():
            self.values[item.key] = self._item(item)
        return self._of(self.body.root, 0)

    # -- values

    def _of(self, child: Any, scope: int) -> Value:
        """The value of a child: an expression that was read before, or a leaf."""
        if isinstance(child, int):
            found = self.values.get(child)
            if found is None:  # a recursive function, called from within
                item = self.body.items[child]
                return Typed(self.boxes.function(item, self.boxes.of(item.scope)), None)
            return found
        if isinstance(child, relay.Var):
            return self._variable(child, scope)
        if isinstance(child, relay.Constant):
            return self._constant(child, scope)
        name = plain(getattr(child, "name_hint", "function"))
        return Typed(self.reader.node("other", name, self.boxes.of(scope), callee=name), None)

    def _variable(self, var: Any, scope: int) -> Value:
        key = key_of(var)
        if key in self.body.lets:
            return self._of(self.body.lets[key], scope)
        self.boxes.of(scope)  # draws the parameters of the function, or clause, that it stands in
        found = self.reader.env.get(key)
        if found is None:
            node = self.reader.node("other", plain(var.name_hint), self.boxes.of(scope))
            found = self.reader.env[key] = Typed(node, None, expr=var, ty=var.checked_type)
        return found

    def _constant(self, expr: Any, scope: int) -> Value:
        parent = self.boxes.of(scope)
        key = (parent, key_of(expr))
        ty, text, label = self.reader.bodies.constant(expr)
        node = self.constants.get(key)
        if node is None:
            node = self.constants[key] = self.reader.node("const", label, parent, text)
        return Typed(node, None, expr=expr, ty=ty)

    # -- expressions

    def _item(self, item: Item) -> Value:
        kind = item.kind
        if kind is relay.Call:
            return self._call(item)
        values = [self._of(child, item.scope) for child in item.children]
        if kind is relay.Tuple and sum(1 for v in values for _ in v.leaves()) > MOST_LEAVES:
            raise ModuleError(
                f"A tuple of {self.r.name!r} holds more than {MOST_LEAVES:,} tensors, those of the "
                "tuples in it counted.",
                "Return or pass less at once.",
            )
        if kind is relay.Tuple:
            return self._tuple(item, values)
        if kind is relay.TupleGetItem:
            return self._element(item, values[0])
        if kind is relay.If or kind is relay.Match:
            return self._branches(item, values)
        if kind is relay.Let:
            return values[1]
        if kind is relay.Function:
            return self._local(item, values[0])
        node = self.reader.node("other", kind.__name__, self._place(item))
        slot = 0
        for value in values:
            slot = self.reader.feed(value, node, slot)
        return spread(node, None, item.ty, item.expr)

    def _place(self, item: Item) -> int:
        """The box that an item's node lies in: its region's, or its scope's."""
        root = self.regions.of(item.key) if self.regions else None
        if root is None:
            return self.boxes.of(item.scope)
        return self.r.sites[self._site(root, item)].node

    def _site(self, root: int, item: Item) -> int:
        index = self.sites.get(root)
        if index is None:
            assert self.regions is not None
            reader = self.reader
            name = f"region {reader.region_count}"
            reader.region_count += 1
            box = reader.node("region", name, self.boxes.of(item.scope))
            site = Site(name, self.regions.backend[root], reader.home, box, None)
            index = self.sites[root] = len(self.r.sites)
            self.r.sites.append(site)
            self.borders[root] = set()
        return index

    def _tuple(self, item: Item, values: list[Value]) -> Value:
        ty = item.ty
        node = self.reader.node("tuple", "", self._place(item))
        slot = 0
        for value in values:
            slot = self.reader.feed(value, node, slot)
        return Typed(node, None, 0, through(node, values), item.expr, ty)

    def _element(self, item: Item, whole: Value) -> Value:
        index = int(item.expr.index)
        field = whole.fields[index] if whole.fields is not None else None
        if field is not None and whole.node < 0:
            return field  # the result of a function drawn in place
        node = self.reader.node("get", f".{index}", self._place(item))
        if field is None:
            self.reader.feed(whole, node)
            return spread(node, whole.origin, item.ty, item.expr)
        self.reader.feed(field, node)
        (value,) = through(node, [field])
        return value

    def _branches(self, item: Item, values: list[Value]) -> Value:
        node = self.boxes.branching(item)
        inputs = []
        for slot, value in enumerate(values):
            for leaf in value.leaves():
                if leaf.node >= 0:
                    self.reader.edges.append(Edge(leaf.node, node, slot, leaf.out))
                inputs.append(leaf.origin)
        self.r.inputs[node] = inputs
        return spread(node, node, item.ty, item.expr)

    def _local(self, item: Item, result: Value) -> Value:
        box = self.boxes.function(item, self.boxes.of(item.scope))
        self.reader.feed(result, self.reader.node("output", "result", box))
        self.r.results += [leaf.origin for leaf in result.leaves()]
        return Typed(box, None, expr=item.expr, ty=item.ty)

    # -- calls

    def _call(self, item: Item) -> Value:
        op = item.op
        count = len(item.children)
        if item.name:
            if item.name in (BEGIN, END):
                return self._border(item, item.name)
            return self._operator(item, "op", "")
        if isinstance(op, GlobalVar):
            name = plain(op.name_hint)
            if name in self.reader.boxed:
                compiler = self.reader.compilers.get(name, "")
                if not (self.reader.outlined and compiler and not self.reader.within):
                    return self._inline(item, self.reader.functions[name], name)
                value = self._operator(item, "call", name)
                site = Site(name, compiler, self.reader.home, value.node, item.expr)
                self.r.sites.append(site)
                return value
            return self._operator(item, "call", name)
        if item.rule:
            return self._inline(item, op, self.reader.home, item.rule)
        name = plain(getattr(op, "name_hint", "function"))
        if isinstance(op, relay.Var):
            value = self._operator(item, "call", name)
            closure = self._variable(op, item.scope)
            self.reader.feed(closure, value.node, count)
            return value
        return self._operator(item, "call", name)

    def _border(self, item: Item, name: str) -> Value:
        """compiler_begin and compiler_end let the value through, and tell what a region takes."""
        (value,) = (self._of(child, item.scope) for child in item.children)
        if self.regions is None:
            return value
        if name == END:
            root = self.regions.of(item.children[0]) if isinstance(item.children[0], int) else None
            if root is not None and root in self.sites:
                site = self.r.sites[self.sites[root]]
                before = site.result.fields if site.result is not None else None
                site.result = Value(-1, None, 0, [*(before or []), value])
        return value

    def _enter(self, item: Item) -> None:
        """Note what enters the region by an item's arguments."""
        if self.regions is None:
            return
        root = self.regions.of(item.key)
        if root is None:
            return
        index = self._site(root, item)
        for child in item.children:
            border = isinstance(child, int) and self.regions.begins(child)
            if border and child not in self.borders[root]:
                self.borders[root].add(child)
                self.r.sites[index].arguments.append(self.values[child])

    def _operator(self, item: Item, kind: str, callee: str) -> Value:
        r, reader = self.r, self.reader
        call = item.expr
        values = [self._of(child, item.scope) for child in item.children]
        self._enter(item)
        node = reader.node(kind, "", self._place(item), "", callee)
        inputs: list[Origin] = []
        slot = 0
        for value in values:
            slot = reader.feed(value, node, slot)
            inputs += [leaf.origin for leaf in value.leaves()]
        r.calls[node] = call
        r.names[node] = item.name or callee
        r.tags[node] = item.tag
        r.variables[node] = ""
        r.inputs[node] = inputs
        r.values[node] = values
        r.homes[node] = reader.home
        r.blocks[node] = self._block(item.scope)
        if reader.rule:
            r.composites[node] = reader.rule
        site = reader.site
        if site < 0 and self.regions is not None:
            root = self.regions.of(item.key)
            site = -1 if root is None else self._site(root, item)
        if site >= 0:
            r.site_of[node] = site
            r.sites[site].nodes.append(node)
        return spread(node, node, item.ty, call)

    def _block(self, scope: int) -> int:
        """A number for the scope, unique in the function of the module."""
        number = self.blocks.get(scope)
        if number is None:
            if scope == 0 and self.parent >= 0:
                number = self.reader.block
            else:
                self.reader.block_count += 1
                number = self.reader.block_count
            self.blocks[scope] = number
        return number

    def _inline(self, item: Item, function: Any, name: str, rule: str = "") -> Value:
        """Read a composite or external function at one of its calls, inside a box."""
        reader = self.reader
        arguments = [self._of(child, item.scope) for child in item.children]
        codegen = "" if rule else reader.compilers.get(name, "")
        composite = rule or plain(attribute(function, "Composite") or "")
        self._enter(item)
        parent = self._place(item)
        outer = reader.home, reader.rule, reader.site, reader.block
        reader.block = self._block(item.scope)
        reader.drawn.add(name)
        reader.home = name
        reader.inlined += 1
        if reader.inlined > MOST_INLINED:
            raise ModuleError(
                f"The module calls composite and external functions {MOST_INLINED} times and more, "
                "counted as they unfold: each calls the one before several times, or itself.",
                "Inline such functions, or take their attributes Composite and Compiler away, "
                "before recording.",
            )
        if self.regions is not None and (root := self.regions.of(item.key)) is not None:
            reader.site = self._site(root, item)
        made = -1
        if codegen and reader.site < 0 and not reader.within:
            parent = reader.node("region", name, parent, "", name)
            site = Site(name, codegen, outer[0], parent, item.expr)
            site.arguments = arguments
            made = reader.site = len(self.r.sites)
            self.r.sites.append(site)
        if composite:
            reader.rule = composite
            parent = reader.node("composite", reader.rule, parent, "", name)
        for param, value in zip(reader.bodies.params(function), arguments, strict=True):
            reader.env[param.key] = value
        result = _Frame(reader, function, parent).run()
        if made >= 0:
            self.r.sites[made].result = result
        reader.home, reader.rule, reader.site, reader.block = outer
        if result.fields is not None:
            return Value(-1, None, 0, result.fields)
        return result
