"""One function of a Graphviz figure: its nodes, boxes and edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from byocviz.recording.schema import FunctionView, Node, Operator, Place
from byocviz.render.dot_words import colours, kinds, rule_name, scalar, shape, words
from byocviz.render.flows import Drawn
from byocviz.render.palette import Paint
from byocviz.render.pieces import short_op

if TYPE_CHECKING:
    from byocviz.render.dot_text import Writer

_INTO = ("call_tir", "call_tir_inplace", "call_dps_packed")


class FunctionWriter:
    """The lines of one drawn function, under names that start with ``prefix``."""

    def __init__(self, writer: Writer, view: FunctionView, found: Drawn, prefix: str) -> None:
        assert view.graph is not None
        self.w, self.view, self.drawn, self.prefix = writer, view, found, prefix
        self.nodes = view.graph.nodes
        self.rule: dict[int, str] = {}
        """Composites of one operator, drawn as a second line round it: rule by node."""
        self.children: dict[int, list[int]] = {}
        """What lies in each box, in order; -1 for what lies in none."""
        self.first: dict[int, int] = {}
        """A drawn node in each box, to draw edges to."""
        self.folded: dict[int, int] = {}
        """The operator of each such composite, by its box."""
        self._fold_single()
        parent = found.parent
        for i in sorted((*found.nodes, *found.boxes)):
            if i not in self.folded:
                self.children.setdefault(parent[i], []).append(i)
        for i in found.nodes:
            at = parent[i]
            while at != -1 and at not in self.first:
                self.first[at] = i
                at = parent[at]
        self.branches: dict[int, list[int]] = {}
        """The branches of each ``if``."""
        for i in found.boxes:
            owner = self.nodes[i].owner
            if self.nodes[i].kind == "branch" and 0 <= owner < len(self.nodes):
                self.branches.setdefault(owner, []).append(i)

    def _fold_single(self) -> None:
        inside: Counter[int] = Counter()
        only: dict[int, int] = {}
        for i in (*self.drawn.nodes, *self.drawn.boxes):
            around = self.drawn.parent[i]
            inside[around] += 1
            only[around] = i
        for box in self.drawn.boxes:
            if inside[box] != 1 or self.nodes[box].kind != "composite":
                continue
            one = only[box]
            if self.nodes[one].kind == "op":
                self.folded[box] = one
                self.rule[one] = self.nodes[box].label
                self.drawn.parent[one] = self.drawn.parent[box]
        self.boxes = set(self.drawn.boxes) - self.folded.keys()

    def name(self, i: int) -> str:
        return f"{self.prefix}{i}"

    # -- nodes and boxes

    def lines(self) -> Iterator[str]:
        # A walk without recursion: boxes can lie in boxes as deep as `flows.MAX_DEPTH`.
        todo: list[int | str] = list(reversed(self.children.get(-1, [])))
        while todo:
            one = todo.pop()
            if isinstance(one, str):
                yield one
            elif one in self.boxes:
                yield f"subgraph cluster_{self.name(one)} {{"
                yield f"graph [{self._box(one)}]"
                if one not in self.first:
                    self.first[one] = -1
                    yield f'{self.name(one)}e [shape=point, style=invis, label=""]'
                todo.append("}")
                todo.extend(reversed(self.children.get(one, [])))
            else:
                yield from self._node(one)
        yield from self._edges()

    def _operator(self, node: Node) -> tuple[Operator | None, Place | None, int]:
        """The operator that a node stands for, where it stands, and its id. Where equal
        subgraphs share a function, all stand in the same place in it, and the first speaks."""
        for key in node.ops[:1]:
            return self.w.recording.ops.get(key), self.w.step.places.get(key), key
        return None, None, -1

    def _node(self, i: int) -> Iterator[str]:
        node, name, w = self.nodes[i], self.name(i), self.w
        if node.kind == "op" and node.ops:
            yield f"{name} [{self._op(i, node)}]"
        elif node.kind == "call":
            yield f"{name} [{self._call(i, node)}]"
        elif node.kind in ("param", "output"):
            paint = w.paint("io")
            small = [w.small(shape(node.type), paint.ink)] if node.type else []
            label = w.label(words(node.label or node.kind), small, paint)
            yield f'{name} [label={label}, {colours(paint)}, style="filled,rounded,bold"]'
        elif node.kind == "if":
            paint = w.paint("flow")
            label = w.label("if", [], paint)
            yield (
                f"{name} [label={label}, {colours(paint)}, shape=diamond, style=filled, "
                'margin="0.02,0.02"]'
            )
            if self.branches.get(i):
                yield (
                    f'{name}j [label="", shape=circle, width=0.13, height=0.13, fixedsize=true, '
                    f"style=filled, {colours(paint)}]"
                )
        else:
            paint = w.paint("none")
            title = words(node.label or node.kind)
            small = [w.small(words(node.kind), paint.ink)] if node.label else []
            label = w.label(title, small, paint)
            yield f'{name} [label={label}, {colours(paint)}, style="filled,rounded,dashed"]'

    def _op(self, i: int, node: Node) -> str:
        w = self.w
        op, place, key = self._operator(node)
        reason = w.step.reasons.get(key)
        on = place.on if place else "tvm"
        paint = w.on(on)
        known = op.name if op else node.label
        title = words(short_op(known))
        small = []
        if op and op.callee and short_op(known) in _INTO:
            title = words(op.callee)
            small.append(w.small(words(short_op(known)), paint.ink))
        where = "TVM" if on == "tvm" else words(on)
        shapes = op.out_types if op else []
        made = shape(shapes[0]) if len(shapes) == 1 else f"{len(shapes)} results" * bool(shapes)
        small.append(w.small(" &#183; ".join(filter(None, (made, where))), paint.ink))
        small += self._constants(i, paint)
        line = paint.line
        more = ""
        if i in self.rule:
            mark = w.paint("composite", "composite function")
            rule = words(rule_name(self.rule[i], w.recording.backend.name), 32)
            small.append(w.small(f"composite {rule}", mark.ink if on == "tvm" else paint.ink))
            more = ", peripheries=2"
            if on == "tvm":
                line = mark.line
        if reason is not None and on == "tvm":
            pruned = reason.code == "pruned"
            name, legend = (
                ("prune", "given back to TVM") if pruned else ("reason", "why it stays on TVM")
            )
            mark = w.paint(name, f"! {legend}")
            small.append(w.small(f"<B>! {words(reason.code, 32)}</B>", mark.ink))
            if pruned:
                line = mark.line
        return f"label={w.label(title, small, paint)}, {colours(paint, line)}{more}"

    def _constants(self, i: int, paint: Paint) -> list[str]:
        """Scalars that an operator takes, by value; tensors are its weights and go unsaid."""
        values = [one for one in self.drawn.constants.get(i, ()) if one != "const"]
        if not values:
            return []
        said = ", ".join(scalar(one) for one in values[:3]) + ", ..." * (len(values) > 3)
        return [self.w.small(f"with {said}", paint.ink)]

    def _call(self, i: int, node: Node) -> str:
        w = self.w
        if 0 <= node.subgraph < len(w.step.subgraphs):
            sub = w.step.subgraphs[node.subgraph]
            paint = w.on(sub.backend)
            small = [w.small(kinds(sub.ops), paint.ink), *w.sub_lines(sub, paint)]
            label = w.label(w.sub_title(node.subgraph), small, paint)
            return f"label={label}, {colours(paint)}, style=filled, penwidth=2"
        op, _, _ = self._operator(node)
        callee = node.callee or (op.name if op else node.label)
        paint = w.paint("none")
        again = callee == self.view.name
        said = w.small("calls itself: the loop goes on" if again else "call", paint.ink)
        label = w.label(words(callee), [said, *self._constants(i, paint)], paint)
        return f"label={label}, {colours(paint)}, style=filled"

    def _box(self, i: int) -> str:
        node, w = self.nodes[i], self.w
        common = "labelloc=t, labeljust=l, margin=9"
        if node.kind == "region":
            known = 0 <= node.subgraph < len(w.step.subgraphs)
            sub = w.step.subgraphs[node.subgraph] if known else None
            paint = w.on(sub.backend if sub else w.recording.backend.name)
            title = w.sub_title(node.subgraph) if known else words(node.label)
            small = w.sub_lines(sub, paint) if sub else []
            label = w.label(title, small, paint, left=True)
            # A third of the fill, so that the operators stand out from it.
            return (
                f'style="filled,rounded", fillcolor="{paint.fill}55", color="{paint.line}", '
                f"penwidth=1.8, {common}, label={label}"
            )
        if node.kind == "composite":
            paint = w.paint("composite", "composite function")
            rule = words(rule_name(node.label, w.recording.backend.name), 48)
            label = w.label(rule, [], paint)
            return f'style=rounded, color="{paint.line}", penwidth=1.4, {common}, label={label}'
        paint = w.paint("flow" if node.kind == "branch" else "none")
        kind = "function " if node.kind == "function" else ""
        label = w.label(kind + words(node.label or node.kind), [], paint)
        return (
            f'style="rounded,dashed", color="{paint.line}", penwidth=1.2, {common}, label={label}'
        )

    # -- edges

    def _edges(self) -> Iterator[str]:
        counts = Counter((src, dst, slot) for src, dst, slot in self._ends())
        for (src, dst, attributes), times in counts.items():
            more = f'label="{times}x"' if times > 1 else ""
            said = ", ".join(filter(None, (attributes, more)))
            yield f"{src} -> {dst} [{said}]" if said else f"{src} -> {dst}"
        for owner, boxes in self.branches.items():
            if self.nodes[owner].kind != "if":
                continue
            colour = self.w.theme.paints["flow"].line
            for box in boxes:
                yield (
                    f"{self.name(owner)} -> {self._inside(box)} "
                    f'[lhead=cluster_{self.name(box)}, style=dashed, color="{colour}"]'
                )

    def _ends(self) -> Iterator[tuple[str, str, str]]:
        colour = self.w.theme.paints["flow"].line
        for src, dst, slot, _ in self.drawn.flows:
            src, dst = self.folded.get(src, src), self.folded.get(dst, dst)
            attributes = []
            start, end = self.name(src), self.name(dst)
            if src in self.boxes:
                start = self._inside(src)
                attributes.append(f"ltail=cluster_{self.name(src)}, style=dotted")
            elif self.nodes[src].kind == "if" and self.branches.get(src):
                start += "j"
            if dst in self.boxes:
                end = self._inside(dst)
                attributes.append(f"lhead=cluster_{self.name(dst)}")
            elif self.nodes[dst].kind == "if" and self.branches.get(dst) and slot:
                end += "j"
                attributes.append(f'color="{colour}"')
            yield start, end, ", ".join(attributes)

    def _inside(self, box: int) -> str:
        first = self.first.get(box, -1)
        return self.name(first) if first >= 0 else f"{self.name(box)}e"
