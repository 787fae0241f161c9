"""Loop sites on edges: where they stand, and what becomes of phis."""

from tests.unit.recorders.instrument.test_rewrite import TRIPLE, accepted, shape

from recbulc.recorders.instrument.rewrite import instrument
from recbulc.recorders.instrument.site import SiteKind

LOOP = f"""{TRIPLE}define i32 @f(i32 %n) {{
entry:
  br i1 true, label %body, label %end
body:
  %i = phi i32 [ 0, %entry ], [ %next, %body ]
  %next = add i32 %i, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %body, label %end
end:
  %r = phi i32 [ 7, %entry ], [ %next, %body ]
  ret i32 %r
}}
"""


def test_edges_are_split_and_phis_follow(tmp_path):
    found = instrument(LOOP)
    lines = shape(found)
    names = {line.split()[0]: number for number, line in enumerate(lines) if line.startswith("LOOP")}
    assert [*names] == ["LOOP_ENTRY", "LOOP_BACK", "LOOP_EXIT"]
    blocks = [line for line in lines if line.endswith(":")]
    assert blocks == ["entry:", "body:", "end:", "rb.edge.0.1:", "rb.edge.1.1:", "rb.edge.1.2:"]
    assert "%i = phi i32 [ 0, %rb.edge.0.1 ], [ %next, %rb.edge.1.1 ]" in lines
    assert "%r = phi i32 [ 7, %entry ], [ %next, %rb.edge.1.2 ]" in lines
    assert "br i1 %again, label %rb.edge.1.1, label %rb.edge.1.2" in lines
    accepted(found, tmp_path)


def test_an_edge_without_alternatives_needs_no_block():
    text = LOOP.replace("br i1 true, label %body, label %end", "br label %body").replace("[ 7, %entry ], ", "")
    lines = shape(instrument(text))
    assert [line for line in lines if line.startswith("rb.edge")] == ["rb.edge.1.1:"]
    entry, leave = (
        next(n for n, line in enumerate(lines) if line.startswith(kind)) for kind in ("LOOP_ENTRY", "LOOP_EXIT")
    )
    assert lines[entry + 1] == "br label %body"
    assert lines[leave - 1].startswith("%r = phi")
    assert lines[leave + 1].startswith("FUNC_EXIT")  # the loop is left first


def test_several_cases_to_one_place_become_one_edge(tmp_path):
    text = f"""{TRIPLE}define i32 @f(i32 %n) {{
entry:
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %j, %head ], [ %j, %head ], [ 3, %other ]
  %j = add i32 %i, 1
  switch i32 %j, label %end [
    i32 1, label %head
    i32 2, label %head
    i32 3, label %other
  ]
other:
  br label %head
end:
  ret i32 %j
}}
"""
    found = instrument(text)
    lines = shape(found)
    assert "%i = phi i32 [ 0, %entry ], [ %j, %rb.edge.1.1 ], [ 3, %other ]" in lines
    assert lines.count("i32 1, label %rb.edge.1.1") == lines.count("i32 2, label %rb.edge.1.1") == 1
    accepted(found, tmp_path)


def test_nested_loops_leave_the_inner_one_first_and_enter_the_outer_one_first(tmp_path):
    text = f"""{TRIPLE}define void @f(i1 %c) {{
entry:
  br label %inner
inner:
  br i1 %c, label %inner, label %latch
latch:
  br i1 %c, label %inner, label %end
end:
  ret void
}}
"""
    found = instrument(text)
    kinds = [site.kind for site in found.sites]
    assert kinds.count(SiteKind.LOOP_ENTRY) == 1  # both loops have one header: they are one
    both = text.replace("label %inner, label %end", "label %outer, label %end").replace(
        "br label %inner\ninner:", "br label %outer\nouter:\n  br label %inner\ninner:"
    )
    found = instrument(both)
    assert [site.kind.name for site in found.sites].count("LOOP_ENTRY") == 2
    accepted(found, tmp_path)


def test_landing_pads_and_computed_gotos_are_left_alone(tmp_path):
    text = f"""{TRIPLE}declare void @use()
declare i32 @__gxx_personality_v0(...)
define void @f(i1 %c) personality ptr @__gxx_personality_v0 {{
entry:
  br label %head
head:
  invoke void @use()
          to label %more unwind label %pad
more:
  invoke void @use()
          to label %head unwind label %pad
pad:
  %e = landingpad {{ ptr, i32 }}
          catch ptr null
  br i1 %c, label %head, label %end
end:
  ret void
}}
define void @g(ptr %to) {{
entry:
  br label %a
a:
  indirectbr ptr %to, [label %a, label %b, label %c]
b:
  br label %a
c:
  ret void
}}
"""
    found = instrument(text)
    lines = shape(found)
    assert lines.count("to label %rb.edge.2.1 unwind label %pad") == 1  # the way on is split, the way out is not
    assert sum("unwind label %pad" in line for line in lines) == 2
    rest = "\n".join(found.lines).partition("define void @g")[2]
    assert "indirectbr ptr %to, [label %a, label %b, label %c]" in rest
    accepted(found, tmp_path)


def test_block_names_are_not_mistaken_for_longer_ones(tmp_path):
    text = f"""{TRIPLE}define void @f(i32 %n) {{
  br label %1
1:
  %2 = icmp eq i32 %n, 0
  br i1 %2, label %1, label %10
10:
  br i1 %2, label %1, label %11
11:
  br i1 %2, label %12, label %10
12:
  ret void
}}
"""
    text = text.replace("%10", '%"1 0"').replace("\n10:", '\n"1 0":').replace("%11", "%x1").replace("\n11:", "\nx1:")
    text = text.replace("%12", "%x12").replace("\n12:", "\nx12:")
    accepted(instrument(text), tmp_path)
