"""The ``.byocviz`` file: whole, or a `RecordingError` that says what is wrong with it."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import stat
import subprocess
import sys
import zipfile

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byocviz.errors import RecordingError
from byocviz.recording import Recording, RecordingData, file, from_bytes, load, to_bytes
from byocviz.recording.atomic import usable
from byocviz.recording.payload import crowded, encode
from byocviz.recording.schema import Rewrite
from tests.recording.strategies import built, recordings


def _packed(payload: bytes, /, **head: object) -> bytes:
    """A file around any payload, whatever its head claims."""
    packed = lzma.compress(payload)
    fields = {"schema": 1, "payload": len(payload), "stored": len(packed), "byocviz": "0.1.0"}
    raw = msgspec.json.encode(fields | head)
    return file.MAGIC + b"\x01" + len(raw).to_bytes(4, "little") + raw + packed


def _plain(recording: Recording) -> dict:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(recording))


def _unchecked(plain: dict) -> bytes:
    """The file of a recording in plain form, whatever it claims."""
    raw = msgspec.msgpack.encode(plain)
    return _packed(encode(msgspec.msgpack.decode(raw, type=Recording)))


@given(recordings())
def test_what_is_saved_is_what_is_loaded(recording: Recording) -> None:
    assert from_bytes(to_bytes(recording)) == recording


@given(recordings())
def test_equal_recordings_make_equal_files(recording: Recording) -> None:
    data = to_bytes(recording)
    assert to_bytes(from_bytes(data)) == data


@settings(max_examples=150)
@given(st.data())
def test_damage_is_an_error_or_harmless(data: st.DataObject) -> None:
    whole = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)) | st.just(len(whole)))
    with contextlib.suppress(RecordingError):
        # Only the name of the writing version can be changed without being found out.
        assert from_bytes(bytes(whole[:cut])) == RECORDING


@given(st.binary(max_size=300))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(RecordingError):
        from_bytes(data)


@given(st.binary(max_size=200))
def test_any_payload_that_unpacks_is_still_checked(payload: bytes) -> None:
    with contextlib.suppress(RecordingError):
        from_bytes(_packed(payload))


@settings(max_examples=200)
@given(st.data())
def test_a_changed_payload_is_refused_or_holds_together(data: st.DataObject) -> None:
    """Past the checksum: what somebody wrote with the right sizes and sums."""
    payload = bytearray(PAYLOAD)
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = from_bytes(_packed(bytes(payload)))
    except RecordingError:
        return
    found.summary(80)
    repr(found)
    assert from_bytes(to_bytes(found)).title == found.title


def _set(path: str, value: object):
    """A change of the plain form: ``steps.0.places.3.2`` (MessagePack's integers are keys)."""

    def change(plain: dict) -> None:
        *way, last = [int(part) if part.lstrip("-").isdigit() else part for part in path.split(".")]
        for part in way:
            plain = plain[part]
        plain[last] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("steps.5.functions.0.graph.nodes.3.3", 10_000, "its parent is 10000"),
        ("steps.5.functions.0.graph.nodes.1.3", 1, "lies in itself"),
        ("steps.5.functions.0.graph.nodes.1.6", 99, "its subgraph is 99"),
        ("steps.5.functions.0.graph.nodes.1.7", -2, "its owner is -2"),
        ("steps.5.functions.0.graph.nodes.4.2", [77777], "operator 77777"),
        ("steps.5.functions.0.graph.edges.0.0", -1, "edge 0 joins -1"),
        ("steps.5.functions.0.graph.edges.0.1", 10_000, "of 39 nodes"),
        ("steps.5.functions.0.graph.edges.0.2", -1, "slot -1"),
        ("steps.5.functions.0.text", "nowhere", "text 'nowhere'"),
        ("steps.5.functions.0.sites", [4], "a site is 4, of 4"),
        ("steps.5.places.0.1", "gone", "drawn in 'gone'"),
        ("steps.5.places.0.2", 10_000, "its node is 10000"),
        ("steps.5.places.0.5", 50, "its subgraph is 50"),
        ("steps.5.places.9999", ["main", "main", 0, "tvm", "", -1], "operator 9999"),
        ("steps.5.subgraphs.0.name", "tensorrt_1", "stands twice"),
        ("steps.5.subgraphs.0.op_ids", [-5], "operator -5"),
        ("steps.5.subgraphs.0.macs", -1, "macs -1"),
        ("steps.5.subgraphs.0.inputs.0.2", -1, "bytes -1"),
        ("steps.5.subgraphs.0.outputs.0.3", 4321, "operator 4321"),
        ("steps.5.reasons.9999", {"code": "", "text": "", "mend": ""}, "operator 9999"),
        ("steps.5.separations.0.b", 4, "b is 4, of 4"),
        ("steps.5.separations.0.path", [4321], "operator 4321"),
        ("steps.5.profile.ops", {"relax.add": -1}, "counts -1 of 'relax.add'"),
        ("steps.5.profile.total", -1, "total -1"),
        ("steps.5.name", "import", "stands twice"),
        ("ops.0.id", 7, "operator 0 calls itself 7"),
        ("ops.0.replaced_by", [4321], "operator 4321"),
        ("extra", {"a": {1: 2}}, "key 1"),
        ("extra", {"a": msgspec.msgpack.Ext(4, b"x")}, "a Ext"),
    ],
)
def test_each_contradiction_is_named(path: str, value: object, said: str) -> None:
    plain = _plain(built(33))
    _set(path, value)(plain)
    with pytest.raises(RecordingError, match="is damaged") as caught:
        from_bytes(_unchecked(plain), name="x.byocviz")
    assert said in str(caught.value)
    assert "x.byocviz" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("recording.ops.0.macs", "many", "schema"),
        ("recording.steps", None, "schema"),
        ("recording.steps", [], "decoded"),
        ("drawings.5.0.0", [0], "schema"),
        ("drawings.5.0.0.0", "main", "schema"),
        ("drawings.5.0.0.0", -1, "schema"),
        ("drawings.5.0.0.0", 1_000_000, "decoded"),
        ("drawings.5.1.0.0.3.1", 1_000_000, "decoded"),
        ("drawings.5.1", [], "decoded"),
        ("drawings", [], "decoded"),
        ("strings", [], "decoded"),
        ("strings.0", 7, "schema"),
    ],
)
def test_a_payload_whose_parts_do_not_belong_together(path: str, value: object, said: str) -> None:
    plain = msgspec.msgpack.decode(encode(built(33)))
    _set(path, value)(plain)
    with pytest.raises(RecordingError, match="is damaged") as caught:
        from_bytes(_packed(msgspec.msgpack.encode(plain)))
    assert said in str(caught.value)


def test_a_long_name_lies_in_the_file_once() -> None:
    """TVM names a merged function after all that is in it."""
    recording = built(300)
    plain = len(encode(recording))
    name = "_".join(f"relax_add{number}" for number in range(10_000))
    for step in recording.steps:
        step.functions[0].name = name
        for place in step.places.values():
            place.function = place.graph = name
    assert len(encode(recording)) < plain + (2 + len(recording.steps)) * len(name)
    found = from_bytes(to_bytes(recording))
    assert found == recording
    places = [place for step in found.steps for place in step.places.values()]
    assert len({id(place.graph) for place in places}) == 1


def test_a_long_chain_of_boxes_is_no_cycle_and_a_ring_is() -> None:
    plain = _plain(built(9))
    nodes = plain["steps"][0]["functions"][0]["graph"]["nodes"]
    size = len(nodes)
    for number in range(100_000):
        nodes.append(["function", "f", [], size + number - 1 if number else -1])
    from_bytes(_unchecked(plain))
    nodes[size][3] = size + 99_999
    with pytest.raises(RecordingError, match="lies in itself"):
        from_bytes(_unchecked(plain))


@pytest.mark.parametrize("depth", [40, 500, 5_000, 1_000_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    for where in (b"\x81\xa9recording\x81\xa5extra\x81\xa1a", b"\x81\xa7unknown"):
        with pytest.raises(RecordingError):
            from_bytes(_packed(where + b"\x91" * depth))
    nested = {"extra": {"a": []}}
    for _ in range(40):
        nested = {"extra": {"a": nested["extra"]}}
    with pytest.raises(RecordingError, match="nested deeper than 32"):
        from_bytes(_unchecked(nested))


def test_a_bomb_is_not_unpacked() -> None:
    zeros = bytes(64 * 1024 * 1024)
    with pytest.raises(RecordingError, match=r"unpacks to at least .*\n.*max_bytes"):
        from_bytes(_packed(zeros), max_bytes=1_000_000)
    with pytest.raises(RecordingError, match="does not unpack to the 10 bytes that it claims"):
        from_bytes(_packed(zeros, payload=10))
    with pytest.raises(RecordingError, match="damaged"):  # an array of 4 billion, in 5 bytes
        from_bytes(_packed(b"\x81\xa7strings\xdd\xff\xff\xff\xff"))


def _crowd(kind: str, count: int) -> bytes:
    """A file of a few kB whose payload is so many small things."""
    plain = msgspec.msgpack.decode(encode(RecordingData(title="x")))
    inside: dict = {"extra": {"a": "@@@@"}}
    many = b"\xdd" + count.to_bytes(4, "big")
    if kind == "lists":
        many += b"\x90" * count
    elif kind == "numbers":
        many += b"\xcd\x10\x00" * count
    elif kind == "steps":
        inside = {"steps": "@@@@"}
        many += b"\x81\xa4name\xa0" * count
    elif kind == "text":
        many = b"\xdb" + count.to_bytes(4, "big") + b"x" * (count - 4) + "😀".encode()
    plain["recording"] |= inside
    return _packed(msgspec.msgpack.encode(plain).replace(b"\xa4@@@@", many))


@pytest.mark.parametrize(
    ("kind", "count", "what"),
    [
        ("lists", 12_000_000, "lists, dicts or numbers"),
        ("numbers", 5_000_000, "lists, dicts or numbers"),
        ("steps", 2_000_000, "lists, dicts or numbers"),
        ("lists", 20_000_000, "bytes"),
        ("text", 1 << 27, "bytes"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="a limit of address space")
def test_a_crowd_of_small_things_takes_no_memory(
    kind: str, count: int, what: str, tmp_path
) -> None:
    path = tmp_path / "crowd.byocviz"
    path.write_bytes(_crowd(kind, count))
    assert path.stat().st_size < 50_000
    script = """
import lzma, resource, sys
from byocviz.errors import RecordingError
from byocviz.recording import load
room = 400 << 20
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
try:
    load(sys.argv[1])
except RecordingError as error:
    print(error)
""".replace("load, RecordingError", "load\nfrom byocviz.errors import RecordingError")
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert f"holds more {what} than a recording of its size could" in done.stdout


@pytest.mark.parametrize("operators", [33, 705, 4_000])
def test_real_sizes_are_far_from_the_bounds(operators: int) -> None:
    recording = built(operators)
    payload, stored = encode(recording), len(to_bytes(recording))
    assert len(payload) < stored * file._BYTES_PER_STORED / 4
    containers = min(file._MAX_CONTAINERS // 2, stored * file._CONTAINERS_PER_STORED // 4)
    items = min(file._MAX_ITEMS // 2, containers * file._ITEMS_PER_CONTAINER // 2)
    assert not crowded(payload, items, containers)


_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats()
    | st.text()
    | st.sampled_from(["a" * 40, "é" * 200, "x" * 70_000])
    | st.binary(max_size=300)
    | st.builds(msgspec.msgpack.Ext, st.integers(-128, 127), st.binary(max_size=20)),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner, max_size=20),
    max_leaves=60,
)


@given(_PLAIN)
def test_items_are_counted_as_they_are_decoded(value: object) -> None:
    def count(one: object) -> tuple[int, int]:
        inner: list[object] = []
        if isinstance(one, list):
            inner = one
        elif isinstance(one, dict):
            inner = [*one, *one.values()]
        parts = [count(part) for part in inner]
        held = int(isinstance(one, (list, dict)))
        return 1 + sum(part[0] for part in parts), held + sum(part[1] for part in parts)

    payload = msgspec.msgpack.encode(value)
    items, containers = count(value)
    assert not crowded(payload, items, containers)
    assert crowded(payload, items - 1, containers)
    if containers:
        assert crowded(payload, items, containers - 1)


@given(st.binary(max_size=200))
def test_counting_any_bytes_ends(payload: bytes) -> None:
    crowded(payload, 3, 1)


def test_a_dictionary_too_large_to_allocate_is_refused() -> None:
    payload = encode(RecordingData(title="x"))
    wide = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 28}]
    packed = lzma.compress(payload, filters=wide)
    head = msgspec.json.encode({"schema": 1, "payload": len(payload), "stored": len(packed)})
    data = file.MAGIC + b"\x01" + len(head).to_bytes(4, "little") + head + packed
    with pytest.raises(RecordingError, match="does not unpack"):
        from_bytes(data)


@pytest.mark.parametrize("kept", [0, 5, 13, 16, 30, 200, -1])
def test_a_truncated_file_says_so(kept: int) -> None:
    with pytest.raises(RecordingError, match=r"ends after|cut short|is empty"):
        from_bytes(WHOLE[:kept])


def test_what_follows_the_end_is_refused() -> None:
    with pytest.raises(RecordingError, match="3 bytes follow its end"):
        from_bytes(WHOLE + b"abc")


def test_foreign_files_are_called_by_their_kind(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a", "b")
    (tmp_path / "png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    (tmp_path / "gz").write_bytes(gzip.compress(b"x"))
    (tmp_path / "noise").write_bytes(b"\x00\x01\x02" * 40)
    for name, said in (("zip", "a zip"), ("png", "a PNG"), ("gz", "a gzip"), ("noise", "byocviz.")):
        with pytest.raises(RecordingError, match=f"not a recording.*{said}"):
            load(tmp_path / name)


def test_files_that_cannot_be_read(tmp_path) -> None:
    for path in (tmp_path / "absent", tmp_path, "nul\0byte"):
        with pytest.raises(RecordingError, match="cannot be read"):
            load(path)


@pytest.mark.skipif(os.name != "posix", reason="devices and pipes of POSIX")
def test_what_may_never_end_is_not_read(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe"):
        with pytest.raises(RecordingError, match="cannot be read: it is a device or pipe"):
            load(path)


def test_a_file_larger_than_allowed_is_given_up(tmp_path) -> None:
    (tmp_path / "x").write_bytes(WHOLE + bytes(1000))
    with pytest.raises(RecordingError, match="at least"):
        load(tmp_path / "x", max_bytes=len(WHOLE))


def test_a_newer_schema_names_its_writer_and_the_upgrade() -> None:
    data = _packed(b"what a later version writes", schema=9, byocviz="4.2.0\x1b[2J")
    with pytest.raises(RecordingError, match=r"byocviz 4\.2\.0.* schema 9; .* schema 1") as caught:
        from_bytes(data)
    assert "pip install --upgrade byocviz" in caught.value.mend
    assert "\x1b" not in str(caught.value)


def test_a_newer_layout_is_refused() -> None:
    data = bytearray(WHOLE)
    data[len(file.MAGIC)] = 7
    with pytest.raises(RecordingError, match="layout 7"):
        from_bytes(bytes(data))


def test_an_older_schema_goes_through_its_upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = msgspec.msgpack.decode(encode(RECORDING))
    plain["record"] = plain.pop("recording")
    data = _packed(msgspec.msgpack.encode(plain))
    monkeypatch.setattr("byocviz.recording.schema.SCHEMA", 2)
    with pytest.raises(RecordingError, match="schema 1, which this byocviz no longer reads"):
        from_bytes(data)
    monkeypatch.setitem(file.UPGRADES, 1, lambda old: {"recording": old.pop("record")} | old)
    assert from_bytes(data) == RECORDING
    monkeypatch.setitem(file.UPGRADES, 1, lambda old: {"recording": old["absent"]} | old)
    with pytest.raises(RecordingError, match="cannot be decoded"):
        from_bytes(data)


def test_saving_names_the_file_and_leaves_nothing_else(tmp_path) -> None:
    assert RECORDING.save(tmp_path / "a") == tmp_path / "a.byocviz"
    assert RECORDING.save(str(tmp_path / "b.rec")) == tmp_path / "b.rec"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.byocviz", "b.rec"]
    assert load(tmp_path / "a.byocviz") == RECORDING


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_saving_over_keeps_mode_and_link(tmp_path) -> None:
    target = tmp_path / "real.byocviz"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link = tmp_path / "link.byocviz"
    link.symlink_to(target)
    RECORDING.save(link)
    assert link.is_symlink()
    assert load(target) == RECORDING
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = RECORDING.save(tmp_path / "a")
    broken = built(9)
    broken.steps[0].places[99] = broken.steps[0].places[0]
    with pytest.raises(RecordingError, match="contradicts itself: step 'import'"):
        broken.save(path)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(RecordingError, match="No space left"):
        built(12).save(path)
    monkeypatch.undo()
    assert load(path) == RECORDING
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(RecordingError, match="cannot be written"):
        RECORDING.save(tmp_path / "no such folder" / "a")


@pytest.mark.parametrize(
    "path", ["", ".", "..", "/", "a/", "a/.", "a/..", os.devnull, "a", "n\0l", "\ud800", "x" * 300]
)
@pytest.mark.skipif(os.name != "posix", reason="names of POSIX")
def test_paths_that_name_no_file(path: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "a/b.byocviz", "a.byocviz"):
        (tmp_path / folder).mkdir()
    for call in (RECORDING.save, lambda name: usable(file.target(name))):
        with pytest.raises(RecordingError, match=r"cannot be written|name of a file"):
            call(path)
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert found == ["a", "a.byocviz", "a/b.byocviz"]


def test_a_pipe_is_not_replaced(tmp_path) -> None:
    for name in ("pipe", "pipe.byocviz"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(RecordingError, match="device or pipe"):
            RECORDING.save(tmp_path / name)
        assert stat.S_ISFIFO((tmp_path / name).stat().st_mode)


@pytest.mark.parametrize(
    "name", ["模" * 80, "é" * 100 + ".byocviz", "a" * 247, os.fsdecode(b"\xff")]
)
def test_a_name_as_long_and_odd_as_is_legal(name: str, tmp_path) -> None:
    path = file.target(tmp_path / name)
    assert usable(path) == path
    assert not list(tmp_path.iterdir()), "trying leaves nothing"
    assert RECORDING.save(tmp_path / name) == path
    assert list(tmp_path.iterdir()) == [path]
    assert load(path) == RECORDING


@pytest.mark.parametrize("value", [object(), b"bytes", {1: 2}, {1, 2}])
def test_extra_that_are_no_plain_data_cannot_be_saved(value: object) -> None:
    recording = built(9)
    recording.extra["latency"] = value
    with pytest.raises(RecordingError, match="extra"):
        to_bytes(recording)


def _wrong(path: str, value: object) -> Recording:
    """A recording with one field set, past what its type says."""
    recording = built(33)
    *way, last = path.split(".")
    holder: object = recording
    for part in way:
        holder = holder[int(part)] if part.isdigit() else getattr(holder, part)  # type: ignore[index]
    if isinstance(holder, dict):
        holder[int(last) if last.isdigit() else last] = value
    else:
        setattr(holder, last, value)
    return recording


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("backend.prune.min_ops", 2.5, "backend.prune.min_ops: Expected `int`, got `float`"),
        ("backend.prune.require_macs", "x", "backend.prune.require_macs: Expected `bool`"),
        ("steps.1.rewrites", [Rewrite("r", "t", enabled=1)], "steps[1].rewrites[0].enabled: "),
        ("steps.0.max_difference", "big", "steps[0].max_difference: Expected `float | null`"),
        ("steps.0.profile.macs", "many", "steps[0].profile.macs: Expected `int | null`"),
        ("steps.0.profile", None, "steps[0].profile: Expected `object`"),
        ("steps.0.profile", {}, "no attribute"),
        ("steps.0.places.0", None, "steps[0].places[0]: "),
        ("steps.0.places.0.node", "3", "steps[0].places[0].node: Expected `int`"),
        ("steps.0.functions.0.graph.nodes.0.kind", 7, "graph.nodes[0].kind: Expected `str`"),
        ("steps.0.functions.0.graph.nodes.0.label", [], "graph.nodes[0].label: Expected `str`"),
        ("ops.0.macs", 1 << 70, "ops[0].macs: "),
        ("ops.0.name", "\udcff", "ops[0].name: "),
        ("what_if", [3], "what_if[0]: Expected `object`"),
        ("extra.n", 1 << 70, "extra['n']: "),
        ("extra.n", [[object()]], "extra['n'][0][0]: "),
        ("title", 5, "title: Expected `str`"),
        ("ops", None, "ops: Expected `object`"),
        ("steps", None, "steps: Expected `array`"),
    ],
)
def test_what_would_not_load_is_not_written(path: str, value: object, said: str, tmp_path) -> None:
    recording = _wrong(path, value)
    with pytest.raises(RecordingError, match="cannot be written") as caught:
        recording.save(tmp_path / "x")
    assert said in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_endless_extra_are_refused() -> None:
    recording = built(9)
    recording.extra["a"] = recording.extra
    with pytest.raises(RecordingError, match="cannot be written"):
        to_bytes(recording)


def test_a_title_of_a_name_that_is_no_unicode_is_written_out() -> None:
    recording = msgspec.structs.replace(RECORDING, title="caf\udce9 é")
    found = from_bytes(to_bytes(recording))
    assert found.title == r"caf\udce9 é"
    assert recording.title == "caf\udce9 é", "the recording itself stays"
    assert msgspec.structs.replace(found, title=RECORDING.title) == RECORDING


def test_a_recording_too_large_to_load_is_not_written(tmp_path) -> None:
    size = len(encode(RECORDING))
    assert load(file.save(RECORDING, tmp_path / "a", max_bytes=size), max_bytes=size) == RECORDING
    with pytest.raises(RecordingError, match=r"not load again: .* of at most .*\n.*max_bytes"):
        file.save(RECORDING, tmp_path / "b", max_bytes=size - 1)
    crowd = msgspec.structs.replace(RECORDING, extra={"a": [[]] * 300_000})
    with pytest.raises(RecordingError, match="only repeat each other"):
        crowd.save(tmp_path / "b")
    blank = msgspec.structs.replace(RECORDING, texts=RECORDING.texts | {"a": " " * 40_000_000})
    with pytest.raises(RecordingError, match="only repeat each other"):
        blank.save(tmp_path / "b")
    assert not (tmp_path / "b.byocviz").exists()
    grown = 4 * file.MAX_BYTES
    assert load(file.save(crowd, tmp_path / "b", max_bytes=grown), max_bytes=grown) == crowd


def test_a_detection_model_is_small() -> None:
    recording = built(705)
    assert sum(map(len, recording.texts.values())) > 1_000_000
    assert len(to_bytes(recording)) < 100_000


RECORDING = built(33)
WHOLE = to_bytes(RECORDING)
PAYLOAD = encode(built(6))
