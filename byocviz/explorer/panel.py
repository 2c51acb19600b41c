"""The explorer's controls, of ipywidgets: what is pressed calls the explorer, and what it knows is
shown. Nothing here keeps any state of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ipywidgets as w

from byocviz import backends
from byocviz.errors import ByocvizError
from byocviz.explorer import words
from byocviz.recording.schema import STEPS, PrunePolicy, RuleInfo
from byocviz.recording.printable import printable

if TYPE_CHECKING:
    from byocviz.explorer.explorer import Explorer

_WIDE = {"description_width": "initial"}
_PHOTOS = ("coffee", "chelsea", "astronaut")
RULE_BEGIN = 'conv = is_op("relax.nn.conv2d")(wildcard(), wildcard())\nis_op("relax.nn.relu")(conv)\n'


class Panel:
    """All controls of one explorer. ``top`` goes above the drawing, ``below`` under it."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self._quiet = False
        self._rule_boxes: dict[str, w.Checkbox] = {}
        self._rewrite_boxes: dict[str, w.Checkbox] = {}
        self._narrow = w.Layout(width="auto", margin="0")
        self.message = w.HTML()
        self.top = w.VBox([self._transport(), self.message])
        pages = {
            "Rules": self._rules(),
            "Prepare": self._prepare(),
            "Prune": self._prune(),
            "Own rule": self._own_rule(),
            "Stays on TVM": self._held(),
            "This run, last run": self._compare(),
            "Build and run": self._build(),
            "Talk": self._talk(),
            "Save": self._save(),
        }
        self.below = w.Tab(children=list(pages.values()), titles=list(pages))

    def _button(self, text: str, call: Callable[[], Any], tip: str = "", **look: Any) -> w.Button:
        look.setdefault("layout", self._narrow)
        button = w.Button(description=text, tooltip=tip, **look)
        button.on_click(lambda _: self._act(call))
        return button

    def _act(self, call: Callable[[], Any]) -> None:
        """What a person did wrong is said, not raised."""
        try:
            call()
        except (ByocvizError, ValueError, OSError) as error:
            self.message.value = words.failure(error)

    def _set(self, name: str, read: Callable[[Any], Any]) -> Callable[[Any], None]:
        """An observer that changes a setting, unless it was the explorer that moved the control."""

        def observer(change: Any) -> None:
            if not self._quiet:
                self._act(lambda: self.explorer.change(**{name: read(change["new"])}))

        return observer

    # -- the parts

    def _transport(self) -> w.Box:
        ex = self.explorer
        self.slider = w.SelectionSlider(
            options=list(STEPS), description="step", continuous_update=False,
            layout=w.Layout(width="320px"),
        )
        self.slider.observe(self._slid, "value")
        self.play = w.Play(min=0, max=len(STEPS) - 1, interval=2500, show_repeat=False)
        self.play.observe(self._played, "value")
        known = sorted({*backends.names(), self._backend_name()})
        self.backend = w.Dropdown(
            options=known, value=self._backend_name(), description="backend",
            layout=w.Layout(width="230px"),
        )
        self.backend.observe(self._set("backend", str), "value")
        self.cancel = self._button("Cancel", ex.cancel, "Stop what is under way", disabled=True)
        return w.HBox(
            [
                self._button("◀", ex.previous, "Previous step"),
                self._button("▶", ex.next, "Next step: runs it if it has not run"),
                self.play,
                self.slider,
                self._button("Run all", ex.run_all, "Run every step"),
                self.backend,
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

    def _played(self, change: Any) -> None:
        if not self._quiet:
            self.explorer.step = STEPS[change["new"]]

    def _rules(self) -> w.Box:
        self.find = w.Text(placeholder="find a rule", layout=w.Layout(width="260px"))
        self.find.observe(lambda _: self._filter(), "value")
        self.lowerable = w.Checkbox(
            value=False, indent=False, layout=self._narrow,
            description="only what can be built (lowered to ONNX)",
        )
        self.lowerable.observe(self._set("lowerable", bool), "value")
        self.rule_count = w.HTML()
        self.rule_list = w.VBox(layout=w.Layout(max_height="300px", overflow="auto"))
        buttons = [
            self._button("All on", lambda: self._all_rules(True)),
            self._button("All off", lambda: self._all_rules(False)),
        ]
        return w.VBox(
            [w.HBox([self.find, *buttons, self.lowerable, self.rule_count]), self.rule_list]
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
        from byocviz.flow.relax.prepare import REWRITES

        for spec in REWRITES:
            box = w.Checkbox(
                description=spec.name, tooltip=spec.text, indent=False, layout=self._narrow
            )
            box.observe(self._rewrite_toggled(spec.name), "value")
            self._rewrite_boxes[spec.name] = box
        self.rewrites = w.HTML()
        return w.HBox([w.VBox(list(self._rewrite_boxes.values())), self.rewrites])

    def _rewrite_toggled(self, name: str) -> Callable[[Any], None]:
        def observer(change: Any) -> None:
            if not self._quiet:
                self.explorer.change(prepare={**self.explorer.prepare, name: change["new"]})

        return observer

    def _prune(self) -> w.Box:
        self.no_macs = w.Checkbox(
            description="without a multiply-accumulate", indent=False, layout=self._narrow
        )
        self.min_ops = w.BoundedIntText(
            description="fewer operators than", min=0, max=2**31 - 1, style=_WIDE
        )
        self.min_macs = w.BoundedIntText(
            description="fewer MACs than", min=0, max=2**31 - 1, style=_WIDE
        )
        self.pruned = w.HTML()
        for control in (self.no_macs, self.min_ops, self.min_macs):
            control.observe(lambda _: self.preview(), "value")
        apply = self._button(
            "Apply", lambda: self.explorer.change(prune=self.policy()), button_style="primary"
        )
        return w.VBox(
            [
                w.HTML("Subgraphs go back to TVM"),
                self.no_macs, self.min_ops, self.min_macs,
                self.pruned,
                w.HBox([apply, self._button("None", lambda: self.explorer.change(prune=False))]),
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
            value=RULE_BEGIN, rows=8, layout=w.Layout(width="98%", font_family="monospace")
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
                        self._button(
                            "Try it", lambda: self.explorer.try_rule(self.rule_text.value),
                            "Match it alone, in a process of its own",
                        ),
                        self._button(
                            "Add it",
                            lambda: self.explorer.add_rule(
                                self.rule_name.value, self.rule_text.value
                            ),
                            "Put it before the backend's rules",
                            button_style="primary",
                        ),
                        self._button("Take all off", lambda: self.explorer.change(added=())),
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
                        self._button(
                            "Take off",
                            lambda: self.explorer.hold(self.held.value, on=False),
                        ),
                        self._button("Add what is chosen", self.explorer.hold_chosen),
                    ]
                ),
            ]
        )

    def _compare(self) -> w.Box:
        self.compared = w.HTML(words.compared(None))
        return self.compared

    def _build(self) -> w.Box:
        from byocviz.building import runtimes

        self.runtime = w.Dropdown(
            options=["auto", *runtimes.names()], description="runtime", style=_WIDE
        )
        self.precision = w.Dropdown(
            options=["float32", "float16"], description="precision", style=_WIDE
        )
        self.photo = w.Dropdown(
            options=["none", *_PHOTOS], value="none", description="picture", style=_WIDE
        )
        self.upload = w.FileUpload(accept="image/*", multiple=False, description="own picture")
        self.repeat = w.BoundedIntText(
            value=10, min=1, max=1000, description="timed runs", style=_WIDE
        )
        self.built = w.HTML()
        return w.VBox(
            [
                w.HBox(
                    [self.runtime, self.precision, self.photo, self.upload, self.repeat],
                    layout=w.Layout(flex_flow="row wrap"),
                ),
                w.HBox(
                    [
                        self._button(
                            "Build and run", self._start_build, button_style="primary"
                        ),
                        self._button("Cancel", self.explorer.cancel),
                    ]
                ),
                self.built,
            ]
        )

    def _start_build(self) -> None:
        photo: Any = None if self.photo.value == "none" else self.photo.value
        if self.upload.value:
            photo = bytes(self.upload.value[0]["content"])
        self.explorer.build(
            self.runtime.value,
            fp16=self.precision.value == "float16",
            photo=photo,
            repeat=self.repeat.value,
        )

    def _talk(self) -> w.Box:
        self.note = w.Text(
            placeholder="what is said here", layout=w.Layout(width="520px"), description="note"
        )
        self.stops = w.HTML()
        return w.VBox(
            [
                w.HBox(
                    [
                        self.note,
                        self._button("Mark a stop", self._mark, button_style="primary"),
                        self._button("Take the last off", self._unmark),
                    ]
                ),
                self.stops,
            ]
        )

    def _mark(self) -> None:
        self.explorer.mark(self.note.value)
        self.note.value = ""

    def _unmark(self) -> None:
        if self.explorer.stops:
            self.explorer.unmark(len(self.explorer.stops) - 1)

    def _save(self) -> w.Box:
        name = printable(self.explorer.session.title).replace("/", "_")[:60]
        self.path = w.Text(value=f"{name}.byocviz", description="file", style=_WIDE)
        self.code = w.Textarea(rows=12, layout=w.Layout(width="98%", display="none"))
        self.code.add_class("byocviz-code")
        return w.VBox(
            [
                w.HBox(
                    [
                        self.path,
                        self._button("Save the recording", lambda: self._write("save")),
                        self._button("HTML page", lambda: self._write("html")),
                        self._button("SVG of the drawing", lambda: self._write("svg")),
                        self._button("Copy as TVM code", self._code),
                    ],
                    layout=w.Layout(flex_flow="row wrap"),
                ),
                self.code,
            ]
        )

    def _write(self, kind: str) -> None:
        stem = self.path.value.removesuffix(".byocviz") or "recording"
        write = {
            "save": lambda: self.explorer.save(f"{stem}.byocviz"),
            "html": lambda: self.explorer.to_html(f"{stem}.html"),
            "svg": lambda: self.explorer.to_svg(f"{stem}.svg"),
        }[kind]
        path = write()
        self.say(words.good(f"Written: {words.text(path)}"))

    def _code(self) -> None:
        self.code.value = self.explorer.script()
        self.code.layout.display = ""
        self.explorer.viewer.tell(
            {"type": "copy", "text": self.code.value, "what": "Copied the pipeline"}
        )

    # -- what the explorer knows, shown

    def say(self, html: str) -> None:
        """A message under the transport controls."""
        self.message.value = html

    def show(self) -> None:
        """Bring every control to what the explorer knows."""
        ex = self.explorer
        self._quiet = True
        try:
            self._show_rules(ex.session.recording.backend.rules)
            for name, on in ex.prepare.items():
                self._rewrite_boxes[name].value = on
            self.lowerable.value = ex.wanted.lowerable
            policy = ex.policy
            self.no_macs.value = policy.require_macs
            self.min_ops.value, self.min_macs.value = policy.min_ops, min(policy.min_macs, 2**31 - 1)
            name = ex.wanted.backend if isinstance(ex.wanted.backend, str) else ex.wanted.backend.name
            if name not in self.backend.options:
                self.backend.options = sorted({*self.backend.options, name})
            self.backend.value = name
            ops = ex.session.recording.ops
            self.held.options = [
                (f"#{i} {printable(ops[i].name, limit=60)} {printable(ops[i].var, limit=40)}", i)
                for i in sorted(ex.wanted.held)
                if i in ops
            ]
            self.rewrites.value = self._rewrite_table()
            self.compared.value = words.compared(ex.session.comparison())
            self.built.value = words.measured(ex.session.recording.results)
            self._show_stops()
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

    def _show_stops(self) -> None:
        rows = "".join(
            f"<li><b>{words.text(s.step)}</b> {words.text(s.note)}</li>"
            for s in self.explorer.stops[:200]
        )
        self.stops.value = f"<ol>{rows}</ol>" if rows else "<i>No stop yet.</i>"

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
        box = w.Checkbox(indent=False, layout=self._narrow, description=name[:80])

        def observer(change: Any) -> None:
            if not self._quiet:
                self.explorer.toggle_rule(name, change["new"])

        box.observe(observer, "value")
        return box

    def _rewrite_table(self) -> str:
        step = next((s for s in self.explorer.session.recording.steps if s.name == "prepare"), None)
        if step is None:
            return "<i>Run the prepare step to see what each changes.</i>"
        rows = "".join(
            f"<tr><td>{words.text(r.name)}</td><td>{r.count}</td><td>{words.text(r.text)}</td></tr>"
            for r in step.rewrites
        )
        return f"<table><tr><th></th><th>places</th><th></th></tr>{rows}</table>"
