"""Lines for what the optimiser merged."""

from recbulc.recorders.instrument.rewrite import instrument
from recbulc.recorders.instrument.site import SiteKind

IR = """\
@table = global [4 x ptr] zeroinitializer, align 8

define ptr @look(i64 %at) !dbg !4 {
  %first = getelementptr inbounds [4 x ptr], ptr @table, i64 0, i64 %at, !dbg !7
  br label %loop, !dbg !8

loop:
  %place = phi ptr [ %first, %0 ], [ %found, %loop ]
  %found = load ptr, ptr %place, align 8, !dbg !9
  %done = icmp eq ptr %found, null, !dbg !8
  br i1 %done, label %end, label %loop, !dbg !8

end:
  store ptr null, ptr @table, align 8, !dbg !9
  call void @far(), !dbg !10
  ret ptr %found, !dbg !9
}

declare void @far()

!llvm.dbg.cu = !{!0}
!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "look.c", directory: "/home")
!4 = distinct !DISubprogram(name: "look", scope: !1, file: !1, line: 10, unit: !0)
!5 = distinct !DISubprogram(name: "other", scope: !1, file: !1, line: 50, unit: !0)
!7 = !DILocation(line: 12, column: 3, scope: !4)
!8 = !DILocation(line: 13, column: 5, scope: !4)
!9 = !DILocation(line: 0, scope: !4)
!10 = !DILocation(line: 51, column: 1, scope: !5, inlinedAt: !8)
"""


def lines(ir):
    return {site.kind: (site.function, site.line) for site in instrument(ir).sites}


def test_a_merged_access_stands_where_its_address_was_computed():
    assert lines(IR)[SiteKind.BEFORE_READ] == ("look", 12)


def test_without_such_an_address_it_stands_beside_its_neighbours_of_the_same_function():
    with_neighbour = IR.replace("ret ptr %found, !dbg !9", "ret ptr %found, !dbg !8")
    assert lines(with_neighbour)[SiteKind.BEFORE_WRITE] == ("look", 13)


def test_a_neighbour_of_another_function_is_no_help():
    assert lines(IR)[SiteKind.BEFORE_WRITE] == ("look", 10)


def test_who_has_a_line_keeps_it():
    has_line = IR.replace("load ptr, ptr %place, align 8, !dbg !9", "load ptr, ptr %place, align 8, !dbg !8")
    assert lines(has_line)[SiteKind.BEFORE_READ] == ("look", 13)
