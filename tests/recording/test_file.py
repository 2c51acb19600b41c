"""The ``.byocviz`` file: whole, or a `RecordingError` that says what is wrong with it."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import stat
import zipfile

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byocviz.errors import RecordingError
from byocviz.recording import Recording, RecordingData, file, from_bytes, load, to_bytes
from byocviz.recording.payload import encode
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
        ("results", {"a": {1: 2}}, "key 1"),
        ("results", {"a": msgspec.msgpack.Ext(4, b"x")}, "a Ext"),
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
    for where in (b"\x81\xa9recording\x81\xa7results\x81\xa1a", b"\x81\xa7unknown"):
        with pytest.raises(RecordingError):
            from_bytes(_packed(where + b"\x91" * depth))
    nested = {"results": {"a": []}}
    for _ in range(40):
        nested = {"results": {"a": nested["results"]}}
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


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a device without end")
def test_a_file_without_end_is_given_up() -> None:
    with pytest.raises(RecordingError, match="at least"):
        load("/dev/zero", max_bytes=1_000_000)


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


@pytest.mark.parametrize("value", [object(), b"bytes", {1: 2}, {1, 2}])
def test_results_that_are_no_plain_data_cannot_be_saved(value: object) -> None:
    recording = built(9)
    recording.results["latency"] = value
    with pytest.raises(RecordingError, match="results"):
        to_bytes(recording)


@pytest.mark.parametrize("change", [{"title": "\ud800"}, {"results": {"n": 1 << 70}}])
def test_what_messagepack_cannot_hold(change: dict) -> None:
    recording = msgspec.structs.replace(built(9), **change)
    with pytest.raises(RecordingError, match="cannot be written"):
        to_bytes(recording)


def test_a_detection_model_is_small() -> None:
    recording = built(705)
    assert sum(map(len, recording.texts.values())) > 1_000_000
    assert len(to_bytes(recording)) < 100_000


RECORDING = built(33)
WHOLE = to_bytes(RECORDING)
PAYLOAD = encode(built(6))
