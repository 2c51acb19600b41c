"""Results that fit a recording, drawn by hypothesis: what types and `check` allow, and no more."""

from __future__ import annotations

import base64

import msgspec
from hypothesis import strategies as st

from byocviz.recording import STEPS, Recording
from byocviz.recording.results import (
    BuildInfo,
    Check,
    Detected,
    Difference,
    EngineInfo,
    Found,
    Latency,
    ModuleNode,
    Part,
    Photo,
    Results,
    Variant,
)
from tests.recording.strategies import figure, names, recordings, seconds

measured = st.none() | st.floats(0, 1e9)
facts = st.dictionaries(names, names, max_size=2)
_differences = st.builds(
    Difference,
    name=names,
    kind=st.sampled_from(["output", "subgraph"]) | names,
    max_abs=measured,
    max_rel=measured,
    exceeds=st.booleans(),
    note=names,
)
_variants = st.builds(
    Variant,
    name=names,
    kind=st.sampled_from(["tvm", "byoc", "runtime", "part"]) | names,
    setting=st.sampled_from(["", "a", "b"]) | names,
    seconds=st.lists(seconds, max_size=4),
    first=measured,
    median=measured,
    p10=measured,
    p90=measured,
    cannot=st.just("") | names,
    subgraphs=st.none() | st.integers(0, 999),
    boundary_bytes=figure,
    coverage_ops=st.none() | st.floats(0, 1),
    parts=st.lists(st.builds(Part, st.just("TVM") | names, seconds), max_size=2),
    note=names,
)
_found = st.builds(
    Found,
    names,
    st.floats(0, 1),
    st.tuples(*[st.floats(-1e4, 1e4)] * 4),
    st.integers(-1, 89),
)
_images = st.just("") | st.builds(
    lambda kind, data: f"data:image/{kind};base64,{base64.b64encode(data).decode()}",
    st.sampled_from(["jpeg", "png"]),
    st.binary(min_size=3, max_size=20),
)
_photos = st.builds(
    Photo,
    name=names,
    width=st.integers(1, 9999),
    height=st.integers(1, 9999),
    image=_images,
    detected=st.lists(
        st.builds(
            Detected,
            variant=names,
            kind=names,
            found=st.lists(_found, max_size=3),
            max_score=measured,
            max_box=measured,
            note=names,
        ),
        max_size=2,
    ),
)


@st.composite
def _builds(draw: st.DrawFn, recording: Recording) -> BuildInfo:
    keys = st.just("") | (
        st.sampled_from(sorted(recording.texts)) if recording.texts else st.nothing()
    )
    ids = (
        st.lists(st.sampled_from(sorted(recording.ops)), max_size=3)
        if recording.ops
        else st.just([])
    )
    engines = st.builds(
        EngineInfo,
        function=names,
        op_ids=ids,
        seconds=seconds,
        cached=st.booleans(),
        bytes=figure,
        facts=facts,
        code=keys,
        layers=keys,
    )
    tree = [
        ModuleNode(draw(names), draw(names), draw(names), draw(st.integers(-1, at - 1)))
        for at in range(draw(st.integers(0, 4)))
    ]
    return BuildInfo(
        draw(names),
        draw(names),
        stands_in_for=draw(names),
        why=draw(names),
        codegen=draw(st.sampled_from(["python", "native"])),
        target=draw(names),
        step=draw(st.sampled_from(STEPS) | names),
        engines=draw(st.lists(engines, max_size=3)),
        lower_seconds=draw(seconds),
        tvm_seconds=draw(seconds),
        tree=tree,
        made="2025-01-01T00:00:00Z",
        machine=draw(facts),
    )


@st.composite
def with_results(draw: st.DrawFn, recording: Recording, build: bool | None = None) -> Recording:
    """The recording with any results that fit it; ``build`` says whether that part is there."""
    differences = st.lists(_differences, max_size=3)
    timings = st.builds(
        Latency,
        variants=st.lists(_variants, max_size=3),
        repeat=st.integers(0, 99),
        warmup=st.integers(0, 9),
        made=names,
        machine=facts,
        note=names,
    )
    results = Results(
        draw(_builds(recording)) if (draw(st.booleans()) if build is None else build) else None,
        draw(
            st.none()
            | st.builds(Check, st.floats(0, 1), st.floats(0, 1), names, differences, names)
        ),
        draw(st.none() | timings),
        draw(st.lists(_photos, max_size=2)),
    )
    return msgspec.structs.replace(recording, results=results)


@st.composite
def recordings_with_results(draw: st.DrawFn) -> Recording:
    """Any consistent recording with any results that fit it."""
    return draw(with_results(draw(recordings())))
