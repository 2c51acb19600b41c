"""The explorer's controls, of ipywidgets: what is pressed calls the explorer, and what it knows is
shown. Nothing here keeps any state of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ipywidgets as w

from byocviz.explorer import words
from byocviz.explorer.pages import WIDE, Pages
from byocviz.recording.printable import printable
from byocviz.recording.schema import STEPS, PrunePolicy, RuleInfo

if TYPE_CHECKING:
    from byocviz.explorer.explorer import Explorer


class Panel(Pages):
    """All controls of one explorer. ``top`` goes above the drawing, ``below`` under it."""

    def __init__(self, explorer: Explorer) -> None:
        super().__init__(explorer)
        self._quiet = False
        self.build_failed = ""
        """Why the last build did not end well, as HTML."""
        self._rule_boxes: dict[str, w.Checkbox] = {}
        self._rewrite_boxes: dict[str, w.Checkbox] = {}
        self._rewrites: dict[str, w.HTML] = {}
        self.why_here = w.HTML()
        self.top = w.VBox([self._transport(), self.message, self.why_here])
        pages = {
            "Rules": self._rules(),
            "Prepare": self._prepare(),
            "Prune": self._prune(),
            "Own rule": self._own_rule(),
            "Stays on TVM": self._held(),
            "Compare": self._compare(),
            "Build and run": self._build(),
            "Talk": self._talk(),
            "Save": self._save(),
        }
        self.below = w.Tab(children=list(pages.values()), titles=list(pages))
        self.below.add_class("byocviz-tabs")

    def _set(self, name: str, read: Callable[[Any], Any]) -> Callable[[Any], None]:
        """An observer that changes a setting, unless it was the explorer that moved the control."""

        def observer(change: Any) -> None:
            if not self._quiet:
                wanted = read(change["new"])
                self.act(lambda: self.explorer.change(**{name: wanted}))
                if getattr(self.explorer.wanted, name) != wanted:
                    self.show()  # it cannot be: back to what is

        return observer

    # -- the parts

    def _transport(self) -> w.Box:
        ex = self.explorer
        self.slider = w.SelectionSlider(
            options=list(STEPS),
            description="step",
            continuous_update=False,
            layout=w.Layout(width="320px"),
        )
        self.slider.observe(self._slid, "value")
        self.play = w.Play(min=0, max=len(STEPS) - 1, interval=2500, show_repeat=False)
        self.play.observe(self._played, "value")
        known = sorted({*ex.session.dialect.backends(), self._backend_name()})
        self.backend = w.Dropdown(
            options=known,
            value=self._backend_name(),
            description="backend",
            layout=w.Layout(width="230px"),
        )
        self.backend.observe(self._set("backend", str), "value")
        self.isolated = w.Checkbox(
            description="own process",
            tooltip="TVM's passes run in a process of their own: one that crashes becomes a "
            "message, and can be cancelled at once",
            indent=False,
            layout=w.Layout(width="auto", margin="0 12px"),
        )
        self.isolated.observe(self._isolate, "value")
        self.cancel = self.button("Cancel", ex.cancel, "Stop what is under way", disabled=True)
        return w.HBox(
            [
                self.button("◀", ex.previous, "Previous step"),
                self.button("▶", ex.next, "Next step: runs it if it has not run"),
                self.play,
                self.slider,
                self.button("Run all", ex.run_all, "Run every step"),
                self.backend,
                self.isolated,
                self.cancel,
            ],
            layout=w.Layout(flex_flow="row wrap", align_items="center"),
        )

    def _backend_name(self) -> str:
        given = self.explorer.session.settings.backend
        return given if isinstance(given, str) else given.name

    def _slid(self, change: Any) -> None:
        if not self._quiet:
            self.explorer.step = change["new"]

    def _isolate(self, change: Any) -> None:
        if not self._quiet:
            self.explorer.isolated = change["new"]

    def _played(self, change: Any) -> None:
        if not self._quiet:
            self.explorer.step = STEPS[change["new"]]

    def _rules(self) -> w.Box:
        self.find = w.Text(placeholder="find a rule", layout=w.Layout(width="260px"))
        self.find.observe(lambda _: self._filter(), "value")
        self.lowerable = w.Checkbox(
            value=False,
            indent=False,
            layout=w.Layout(width="auto", margin="0 12px"),
            description="only what can be built (lowered to ONNX)",
        )
        self.lowerable.observe(self._set("lowerable", bool), "value")
        self.rule_count = w.HTML()
        self.rule_list = w.VBox(layout=w.Layout(max_height="300px", overflow="auto"))
        buttons = [
            self.button("All on", lambda: self._all_rules(True)),
            self.button("All off", lambda: self._all_rules(False)),
        ]
        return w.VBox(
            [
                w.HBox(
                    [self.find, *buttons, self.lowerable, self.rule_count],
                    layout=w.Layout(flex_flow="row wrap", align_items="center"),
                ),
                self.rule_list,
            ]
        )

    def _all_rules(self, on: bool) -> None:
        shown = [name for name, box in self._rule_boxes.items() if box in self.rule_list.children]
        self.explorer.change(rules={**self.explorer.rules, **dict.fromkeys(shown, on)})

    def _filter(self) -> None:
        wanted = self.find.value.lower().split()
        self.rule_list.children = [
            box
            for name, box in self._rule_boxes.items()
            if all(word in name.lower() for word in wanted)
        ]

    def _prepare(self) -> w.Box:
        rows = []
        for name in self.explorer.session.dialect.rewrites():
            box = w.Checkbox(
                description=name, indent=False, layout=w.Layout(width="190px", margin="0")
            )
            box.observe(self._rewrite_toggled(name), "value")
            said = w.HTML(layout=w.Layout(flex="1 1 300px", width="auto", margin="0"))
            self._rewrite_boxes[name], self._rewrites[name] = box, said
            look = w.Layout(flex_flow="row wrap", align_items="baseline")
            rows.append(w.HBox([box, said], layout=look))
        return w.VBox(rows)

    def _rewrite_toggled(self, name: str) -> Callable[[Any], None]:
        def observer(change: Any) -> None:
            if not self._quiet:
                wanted = {**self.explorer.prepare, name: change["new"]}
                self.act(lambda: self.explorer.change(prepare=wanted))

        return observer

    def _prune(self) -> w.Box:
        self.no_macs = w.Checkbox(
            description="without a multiply-accumulate", indent=False, layout=self.narrow
        )
        self.min_ops = w.BoundedIntText(
            description="fewer operators than", min=0, max=2**31 - 1, style=WIDE
        )
        self.min_macs = w.BoundedIntText(
            description="fewer MACs than", min=0, max=2**31 - 1, style=WIDE
        )
        self.pruned = w.HTML()
        for control in (self.no_macs, self.min_ops, self.min_macs):
            control.observe(lambda _: self.preview(), "value")
        apply = self.button(
            "Apply", lambda: self.explorer.change(prune=self.policy()), button_style="primary"
        )
        return w.VBox(
            [
                w.HTML("Subgraphs go back to TVM"),
                self.no_macs,
                self.min_ops,
                self.min_macs,
                self.pruned,
                w.HBox([apply, self.button("None", lambda: self.explorer.change(prune=False))]),
            ]
        )

    def policy(self) -> PrunePolicy:
        """The policy that the controls say."""
        return PrunePolicy(self.no_macs.value, self.min_ops.value, self.min_macs.value)

    def preview(self) -> None:
        """Show what the policy of the controls would do."""
        if not self._quiet:
            self.pruned.value = words.previewed(self.explorer.session.preview(self.policy()))

    def _own_rule(self) -> w.Box:
        self.rule_name = w.Text(value="my_rule", description="name", layout=w.Layout(width="300px"))
        self.rule_text = w.Textarea(
            value=self.explorer.session.dialect.begin, rows=8, layout=w.Layout(width="98%")
        )
        self.rule_text.add_class("byocviz-code")
        self.rule_said = w.HTML(
            "A pattern in TVM's language (tvm.relax.dpl); the last expression is it."
        )
        return w.VBox(
            [
                self.rule_name,
                self.rule_text,
                w.HBox(
                    [
                        self.button(
                            "Try it",
                            lambda: self.explorer.try_rule(self.rule_text.value),
                            "Match it alone, in a process of its own",
                        ),
                        self.button(
                            "Add it",
                            lambda: self.explorer.add_rule(
                                self.rule_name.value, self.rule_text.value
                            ),
                            "Put it before the backend's rules",
                            button_style="primary",
                        ),
                        self.button("Take all off", lambda: self.explorer.change(added=())),
                    ]
                ),
                self.rule_said,
            ]
        )

    def _held(self) -> w.Box:
        self.held = w.SelectMultiple(options=(), rows=6, layout=w.Layout(width="420px"))
        return w.VBox(
            [
                w.HTML(
                    "After these operators nothing is offloaded: they, and all that depends on "
                    "them, stay on TVM. Right-click a node of the drawing to add one."
                ),
                self.held,
                w.HBox(
                    [
                        self.button(
                            "Take off",
                            lambda: self.explorer.hold(self.held.value, on=False),
                        ),
                        self.button("Add what is chosen", self.explorer.hold_chosen),
                    ]
                ),
            ]
        )

    def _compare(self) -> w.Box:
        self.compared = w.HTML(words.compared(None))
        return self.compared

    # -- what the explorer knows, shown

    def show(self) -> None:
        """Bring every control to what the explorer knows."""
        ex = self.explorer
        self._quiet = True
        try:
            self._show_rules(ex.session.recording.backend.rules)
            self.isolated.value = ex.session.isolated
            self.why_here.value = words.text(ex.session.why_here)
            for name, on in ex.prepare.items():
                self._rewrite_boxes[name].value = on
            self.lowerable.value = ex.wanted.lowerable
            policy = ex.policy
            self.no_macs.value = policy.require_macs
            self.min_ops.value, self.min_macs.value = (
                policy.min_ops,
                min(policy.min_macs, 2**31 - 1),
            )
            name = (
                ex.wanted.backend if isinstance(ex.wanted.backend, str) else ex.wanted.backend.name
            )
            if name not in self.backend.options:
                self.backend.options = sorted({*self.backend.options, name})
            self.backend.value = name
            ops = ex.session.recording.ops
            self.held.options = [
                (f"#{i} {printable(ops[i].name, limit=60)} {printable(ops[i].var, limit=40)}", i)
                for i in sorted(ex.wanted.held)
                if i in ops
            ]
            self._show_rewrites()
            self.compared.value = words.compared(ex.session.comparison())
            self.built.value = words.measured(ex.session.recording.results) + self.build_failed
            self.show_stops()
            self.show_step()
        finally:
            self._quiet = False
        self.preview()

    def show_step(self) -> None:
        """Bring the slider to the step that is looked at."""
        was, self._quiet = self._quiet, True
        try:
            if self.explorer.step in STEPS:
                self.slider.value = self.explorer.step
                self.play.value = STEPS.index(self.explorer.step)
        finally:
            self._quiet = was

    def _show_rules(self, rules: list[RuleInfo]) -> None:
        names = [rule.name for rule in rules]
        if names != list(self._rule_boxes):
            old = self._rule_boxes
            self._rule_boxes = {name: old.get(name) or self._rule_box(name) for name in names}
            self._filter()
        wanted: Mapping[str, bool] = self.explorer.wanted.rules
        ran = "composite" in self.explorer.session.done
        for rule in rules:
            box = self._rule_boxes[rule.name]
            box.value = wanted.get(rule.name, rule.enabled)
            box.description = (
                f"{printable(rule.name, limit=80)}  ({rule.matches})"
                if ran
                else printable(rule.name, limit=80)
            )
        on = sum(box.value for box in self._rule_boxes.values())
        self.rule_count.value = f"{on} of {len(names)} on; matches in brackets"

    def _rule_box(self, name: str) -> w.Checkbox:
        box = w.Checkbox(indent=False, layout=self.narrow, description=name[:80])

        def observer(change: Any) -> None:
            if not self._quiet:
                self.act(lambda: self.explorer.toggle_rule(name, change["new"]))

        box.observe(observer, "value")
        return box

    def _show_rewrites(self) -> None:
        done = self.explorer.session.recording.steps
        step = next((s for s in done if s.name == "prepare"), None)
        did = {rewrite.name: rewrite for rewrite in step.rewrites} if step else {}
        for name, what in self.explorer.session.dialect.rewrites().items():
            self._rewrites[name].value = words.rewritten(did.get(name), what)
