from __future__ import annotations

import pytest
import tvm.relax.backend.contrib.tensorrt
import tvm.relax.backend.cuda.cutlass  # noqa: F401
from tvm import relax
from tvm.relax.dpl import (
    has_dtype,
    is_call_packed,
    is_call_tir,
    is_const,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)
from tvm.relax.dpl.pattern import FunctionPattern

from byocviz.flow.relax.reasons import names_in
from byocviz.flow.relax.reasons.patterns import FUNCTION, Book, root_names, tree

from .lab import anything, conv_bias_relu, conv_relu, rule, table

A, B, C = (is_op(f"relax.{name}") for name in ("exp", "log", "add"))


@pytest.mark.parametrize(
    ("pattern", "names", "roots"),
    [
        (A(wildcard()), {"relax.exp"}, {"relax.exp"}),
        (C(A(wildcard()), is_const()), {"relax.add", "relax.exp"}, {"relax.add"}),
        (A(wildcard()) | B(wildcard()), {"relax.exp", "relax.log"}, {"relax.exp", "relax.log"}),
        ((is_op("relax.exp") | is_op("relax.log"))(wildcard()), {"relax.exp", "relax.log"},
         {"relax.exp", "relax.log"}),
        (A(wildcard()) & wildcard(), {"relax.exp"}, {"relax.exp"}),
        (A(wildcard()).has_attr({"a": 1}).has_dtype("int8"), {"relax.exp"}, {"relax.exp"}),
        (A(wildcard()).has_shape([1, 2]), {"relax.exp"}, {"relax.exp"}),
        (wildcard(), set(), None),
        (wildcard()(wildcard()), set(), None),
        (wildcard() | A(wildcard()), {"relax.exp"}, None),
        (is_call_packed("f"), set(), {FUNCTION}),
        (is_call_tir("f", [A(wildcard())]), {"relax.call_tir", "relax.exp"}, {"relax.call_tir"}),
        (is_op("relax.concat")(is_tuple([A(wildcard()), is_var("x")])),
         {"relax.concat", "relax.exp"}, {"relax.concat"}),
        (is_op("relax.concat")(is_tuple([A(wildcard())], unordered=True)),
         {"relax.concat", "relax.exp"}, {"relax.concat"}),
        (B(is_tuple_get_item(A(wildcard()), 0)), {"relax.log", "relax.exp"}, {"relax.log"}),
        (is_op("relax.reshape")(wildcard(), is_shape([1])), {"relax.reshape"}, {"relax.reshape"}),
        (A(has_dtype("int8")), {"relax.exp"}, {"relax.exp"}),
        (FunctionPattern([wildcard()], B(wildcard())), {"relax.log"}, set()),
    ],
    ids=lambda value: " ".join(sorted(value)) if isinstance(value, set) else None,
)  # fmt: skip
def test_names(pattern, names, roots):
    assert names_in(pattern) == names
    found = root_names(tree(pattern))
    assert found == roots


def test_a_shared_part_is_one_node():
    shared = A(wildcard())
    root = tree(C(shared, shared))
    assert root.args[0] is root.args[1]


def test_a_chain_of_thousands_is_read():
    chain = wildcard()
    for _ in range(5000):
        chain = A(chain)
    assert names_in(chain) == {"relax.exp"}


def test_open_ended_is_read():
    assert tree(C(wildcard(), varg_default_wildcard=True)).open_ended()
    assert not tree(C(wildcard(), wildcard())).open_ended()


def test_names_of_whole_tables():
    for prefix, op in (("tensorrt", "relax.image.resize2d"), ("cutlass", "relax.call_tir")):
        rules = table(prefix)
        assert any(op in names_in(r.pattern) for r in rules)
        for r in rules:
            assert names_in(r.pattern)
            assert all(relax.Call(_op(n), []) is not None for n in names_in(r.pattern))


def _op(name):
    import tvm

    return tvm.ir.Op.get(name)


def test_book_finds_rules_by_any_operator_in_order():
    book = Book([conv_bias_relu(), conv_relu(), anything("t.add", "relax.add", 2)])
    assert [r.name for r in book.naming("relax.add")] == ["t.conv_bias_relu", "t.add"]
    assert [r.name for r in book.naming("relax.nn.relu")] == ["t.conv_bias_relu", "t.conv_relu"]
    assert book.naming("relax.exp") == []
    assert book.prefix() == "t"
    # A rule that can end with any call meets every operator.
    book = Book([anything("t.add", "relax.add", 2), rule("t.any", wildcard())])
    assert [r.name for r in book.naming("relax.exp")] == ["t.any"]
    assert [r.name for r in book.naming("relax.add")] == ["t.add", "t.any"]
