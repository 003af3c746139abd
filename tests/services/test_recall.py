"""Search on a real Neo4j: what is found, what is not, and that no question can break it."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from graph_mem.core.model import Principal, Record, RecordId, RecordKind, Role, Standing
from graph_mem.core.retrieval import LegState, Query, RetrievalMode, ScopeName, SearchPage, Span, Tier
from graph_mem.errors import InvalidInput, NotFound
from graph_mem.services import Deps, capture, facts, lifecycle, recall, records
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.recall import PageStart
from tests.people import Company, company, work_off

LANGUAGES = {
    "zh": ("我们决定在数据库设计中使用图结构", "数据库"),
    "ja": ("会議でデータベースの設計を決定しました", "設計"),
    "ko": ("우리는 데이터베이스를 설계했습니다", "데이터"),
    "ar": ("قررنا استخدام قاعدة البيانات الرسومية", "البيانات"),
    "th": ("เราตัดสินใจใช้ฐานข้อมูลกราฟในโครงการ", "กราฟ"),
    "ru": ("Мы решили использовать графовую базу данных", "графовую"),
    "hi": ("हमने ग्राफ़ डेटाबेस का उपयोग करने का निर्णय लिया", "डेटाबेस"),
    "de": ("Die Maßnahme für die Büroräume beginnt im März", "maßnahme"),
}
BREAKING = [
    *'+-!(){}[]^"~*?:\\/',
    *["&&", "||", "++", "((", "C++", r"C:\repo\a.py", "a AND", "NOT", "OR OR", '"unclosed', "node:", "[1 TO", "tb-"],
    *["AND x", "x) (keys:k*", ") OR (standing:CURRENT", "🙂", "مرحبا", "a\x00b", "\x00", "\ud800", "a^", "/.*/", "*"],
    "x" * 40_000,
    "long words " * 9_000,
]


async def save(
    deps: Deps, who: Principal, *texts: str, process: bool = True, private: bool = False, **more: object
) -> list[RecordId]:
    new = [NewMemory(text=text, private=private, **more) for text in texts]
    saved = await capture.accept_all(deps, who, new, rank=0)
    if process:
        await work_off(deps, who.org_id)
    return [memory.id for memory in saved]


async def ask(deps: Deps, who: Principal, text: str, *, first: int = 10, **filters: object) -> SearchPage:
    return await recall.search_page(deps, who, Query(text, **filters), first=first)


def found(page: SearchPage) -> list[RecordId]:
    return [hit.record.id for hit in page.hits]


def texts(page: SearchPage) -> list[str]:
    return [text_of(hit.record) for hit in page.hits]


def text_of(record: Record) -> str:
    return record.statement if record.kind is RecordKind.FACT else record.text or ""


async def test_what_was_saved_is_found_with_every_number(deps: Deps, org: Company) -> None:
    (mine,) = await save(deps, org.owner, "The billing rate for Northwind is 185 euros an hour.")
    await save(deps, org.owner, "Contoso renewed the hosting contract in March.")
    page = await ask(deps, org.owner, "billing rate for Northwind")
    assert page.trace.mode is RetrievalMode.HYBRID
    assert [leg.state for leg in page.trace.legs] == [LegState.RAN, LegState.RAN]
    first = page.hits[0]
    assert first.record.id == mine
    assert first.score.lexical is not None
    assert first.score.vector is not None
    assert abs(first.score.final - first.score.fused * first.score.strength) < 1e-9
    assert "Northwind" in first.snippet


async def test_unprocessed_memory_is_found_by_its_words_and_counted(deps: Deps, org: Company) -> None:
    (mine,) = await save(deps, org.owner, "Zebrafink is the code name of the rollout.", process=False)
    page = await ask(deps, org.owner, "zebrafink")
    assert found(page) == [mine]
    assert page.trace.pending == 1
    await work_off(deps, org.id)
    page = await ask(deps, org.owner, "zebrafink")
    assert found(page) == [mine]
    assert page.trace.pending == 0


@pytest.mark.parametrize("text", BREAKING, ids=lambda text: repr(text[:20]))
async def test_no_text_breaks_search(deps: Deps, text: str, shelf: Company) -> None:
    page = await ask(deps, shelf.owner, text)
    assert all(hit.record.place.org_id == shelf.id for hit in page.hits)
    again = await ask(deps, shelf.owner, f"{text} marmalade")
    assert any("marmalade" in shown for shown in texts(again)), "the words still match"


@pytest.fixture(scope="module")
async def shelf(deps: Deps) -> Company:
    """An organization with one memory in each language, and one marmalade."""
    made = await company(deps)
    await save(deps, made.owner, *(text for text, _ in LANGUAGES.values()), "orange marmalade for breakfast")
    return made


@pytest.mark.parametrize("language", LANGUAGES)
async def test_inner_word_is_found_in_its_language(deps: Deps, shelf: Company, language: str) -> None:
    text, word = LANGUAGES[language]
    page = await ask(deps, shelf.owner, word)
    assert text in texts(page)
    assert next(hit for hit in page.hits if text_of(hit.record) == text).score.lexical


@pytest.mark.parametrize(
    "identifier", ["RX-7741-Q", r"C:\repo\a.py", "ana@acme.example", "getUserName", "INV-2024-0042", "v2.13.0"]
)
async def test_identifier_is_found_exactly(deps: Deps, org: Company, identifier: str) -> None:
    (mine,) = await save(deps, org.owner, f"Please note {identifier} before you call.")
    await save(deps, org.owner, "Please note RX-7742-Q, ben@acme.example, INV-2024-0043 and v2.14.0 before you call.")
    page = await ask(deps, org.owner, identifier)
    assert found(page)[0] == mine
    assert page.hits[0].score.lexical


async def test_a_rare_word_among_four_hundred_is_found(deps: Deps, org: Company) -> None:
    (mine,) = await save(deps, org.owner, "The password of the safe is quokkafoxtrot.")
    await save(deps, org.owner, *(f"A note on matter {i} and the usual business of the day." for i in range(20)))
    asked = " ".join(f"unheard{i}" for i in range(350)) + " the usual business of the day " * 8 + "quokkafoxtrot"
    page = await ask(deps, org.owner, asked, first=21)
    assert mine in found(page)
    assert next(leg for leg in page.trace.legs if leg.name == "lexical").state is LegState.RAN


async def test_every_combination_of_filters_answers(deps: Deps, org: Company) -> None:
    now = deps.clock()
    await save(deps, org.owner, "The rate is 185.", source_uri="https://x.example/1", occurred_at=now)
    choices = {
        "scope": (None, ScopeName()),
        "kinds": ((), (RecordKind.MEMORY,)),
        "labels": ((), ("note", "decision")),
        "source_uri": (None, "https://x.example/1"),
        "created": (None, Span(now - timedelta(days=1), None)),
        "occurred": (None, Span(None, now + timedelta(days=1))),
        "as_of": (None, now + timedelta(hours=1)),
        "known_at": (None, now + timedelta(hours=1)),
        "include_archived": (False, True),
        "min_tier": (None, Tier.LOW),
    }
    asked = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    for filters in asked[::7]:
        page = await ask(deps, org.owner, "rate", **filters)
        assert len(page.hits) == 1, filters


@pytest.mark.parametrize(
    "filters",
    [
        {"labels": ("decision",)},
        {"kinds": (RecordKind.FACT,)},
        {"source_uri": "https://nowhere.example"},
        {"entity_ids": ("ent_01ARZ3NDEKTSV4RRFFQ69G5FAV",)},
        {"created": Span(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 2, 1, tzinfo=UTC))},
        {"occurred": Span(None, datetime(2020, 2, 1, tzinfo=UTC))},
        {"as_of": datetime(2001, 1, 1, tzinfo=UTC)},
        {"known_at": datetime(2001, 1, 1, tzinfo=UTC)},
    ],
    ids=lambda filters: next(iter(filters)),
)
async def test_a_filter_that_matches_nothing_is_empty(deps: Deps, shelf: Company, filters: dict[str, object]) -> None:
    assert found(await ask(deps, shelf.owner, "marmalade", **filters)) == []
    assert found(await ask(deps, shelf.owner, "marmalade")) != []


@pytest.mark.parametrize(
    "filters", [{"labels": ("nonsense",)}, {"entity_ids": ("x" * 40_000,)}, {"source_uri": "x" * 40_000}], ids=str
)
async def test_an_unknown_filter_value_is_refused(deps: Deps, org: Company, filters: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        await ask(deps, org.owner, "marmalade", **filters)


async def test_a_scope_one_may_not_read_is_as_unknown(deps: Deps, org: Company) -> None:
    stranger = await org.member("stranger")
    insider = await org.member("insider", client="Acme")
    (client,) = insider.client_ids
    await save(deps, org.owner, "Acme pays 185 euros.", client_id=client)
    assert len(found(await ask(deps, insider, "Acme pays", scope=ScopeName(client)))) == 1
    with pytest.raises(NotFound):
        await ask(deps, stranger, "Acme pays", scope=ScopeName(client))
    assert found(await ask(deps, stranger, "Acme pays")) == []


async def test_a_small_partition_beside_a_big_one_fills_its_page(deps: Deps, org: Company) -> None:
    alice, bob = await org.member("alice"), await org.member("bob")
    await save(deps, org.owner, *(f"The quarterly budget review number {i}" for i in range(150)))
    mine = await save(deps, alice, *(f"The quarterly budget review number {i}" for i in range(150, 153)), private=True)
    page = await ask(deps, alice, "quarterly budget review", first=100)
    assert set(mine) <= set(found(page))
    assert not set(mine) & set(found(await ask(deps, bob, "quarterly budget review", first=100)))
    other = await company(deps)
    theirs = await save(deps, other.owner, *(f"The quarterly budget review {i}" for i in range(3)))
    assert sorted(found(await ask(deps, other.owner, "quarterly budget review", first=3))) == sorted(theirs)


async def test_ones_own_record_goes_before_the_same_shared_one(deps: Deps, org: Company) -> None:
    alice = await org.member("alice")
    text = "The launch is planned for the second week of May."
    (shared,) = await save(deps, org.owner, text)
    (own,) = await save(deps, alice, text, private=True)
    assert found(await ask(deps, alice, "when is the launch planned"))[:2] == [own, shared]


async def test_pages_neither_repeat_nor_miss_while_others_insert(deps: Deps, org: Company) -> None:
    mine = set(await save(deps, org.owner, *(f"Inventory of warehouse row {i:02d}" for i in range(57))))
    query = Query("inventory of warehouse row")
    page = await recall.search_page(deps, org.owner, query, first=20)
    seen = [found(page)]
    while page.has_next:
        await save(deps, org.owner, f"Inventory of warehouse row new {len(seen)}")
        start = PageStart(page.trace.id, page.hits[-1].rank)
        page = await recall.search_page(deps, org.owner, query, first=20, after=start)
        if page.hits:
            seen.append(found(page))
    assert [len(one) for one in seen] == [20, 20, 17]
    assert {id for one in seen for id in one} == mine


async def test_a_foreign_cursor_is_refused(deps: Deps, org: Company) -> None:
    alice = await org.member("alice")
    await save(deps, org.owner, *(f"Row {i} of the table" for i in range(5)))
    page = await ask(deps, org.owner, "row of the table", first=2)
    start = PageStart(page.trace.id, 2)
    with pytest.raises(InvalidInput):
        await recall.search_page(deps, alice, Query("row of the table"), first=2, after=start)
    with pytest.raises(InvalidInput):
        await recall.search_page(deps, org.owner, Query("something else"), first=2, after=start)
    for place in (-1, 0, 3, 2**40):
        beyond = PageStart(page.trace.id, place)
        with pytest.raises(InvalidInput):
            await recall.search_page(deps, org.owner, Query("row of the table"), first=2, after=beyond)


async def test_superseded_facts_are_passed_over_and_counted(deps: Deps, org: Company) -> None:
    for i in range(12):
        await facts.save(deps, org.owner, NewFact(subject="Ana", relation="role", statement=f"Ana has role {i}."))
    await save(deps, org.owner, *(f"Ana wrote note {i} on her role." for i in range(4)))
    page = await ask(deps, org.owner, "which role has Ana", first=5)
    assert [one for one in texts(page) if one.startswith("Ana has role")] == ["Ana has role 11."]
    assert len(page.hits) == 5
    assert page.trace.passed_over == 11


async def test_asking_for_another_day_finds_what_held_then(deps: Deps, org: Company) -> None:
    days = [datetime(2020 + i, 1, 1, tzinfo=UTC) for i in range(3)]
    for i, day in enumerate(days):
        await facts.save(
            deps,
            org.owner,
            NewFact(subject="Acme", relation="seat", statement=f"Acme sits in town {i}.", valid_from=day),
        )
    await work_off(deps, org.id)
    assert texts(await ask(deps, org.owner, "where does Acme sit")) == ["Acme sits in town 2."]
    for i, day in enumerate(days):
        page = await ask(deps, org.owner, "where does Acme sit", as_of=day + timedelta(days=100))
        assert texts(page) == [f"Acme sits in town {i}."]
    assert found(await ask(deps, org.owner, "where does Acme sit", as_of=days[0] - timedelta(days=1))) == []


async def test_what_held_until_a_day_that_is_over_answers_for_that_day_only(deps: Deps, org: Company) -> None:
    def rate(year: int, *, until: datetime | None) -> NewFact:
        begin = datetime(year, 1, 1, tzinfo=UTC)
        said = f"The rate of {year} is 7."
        return NewFact(subject=f"Rate {year}", relation="is", statement=said, valid_from=begin, valid_to=until)

    over = datetime(2021, 1, 1, tzinfo=UTC)
    for new in (rate(2020, until=over), rate(2022, until=None), rate(2023, until=deps.clock() + timedelta(days=900))):
        await facts.save(deps, org.owner, new)
    await work_off(deps, org.id)
    page = await ask(deps, org.owner, "the rate is 7")
    assert set(texts(page)) == {"The rate of 2022 is 7.", "The rate of 2023 is 7."}
    assert "1 fact that would answer held until a day that is over." in page.trace.notes
    then = await ask(deps, org.owner, "the rate is 7", as_of=over - timedelta(days=1))
    assert texts(then) == ["The rate of 2020 is 7."]


async def test_nothing_is_high_that_lacks_the_identifier_of_the_query(deps: Deps, org: Company) -> None:
    await save(deps, org.owner, "RX-7741-Q is the pump of the cellar.", "RX-7742-Q is the valve of the cellar.")
    exact = await ask(deps, org.owner, "RX-7741-Q is the pump of the cellar")
    assert [(text[:9], hit.tier is Tier.HIGH) for text, hit in zip(texts(exact), exact.hits, strict=True)] == [
        ("RX-7741-Q", True),
        ("RX-7742-Q", False),
    ]
    none = await ask(deps, org.owner, "RX-7741-X is the pump of the cellar")
    assert len(none.hits) == 2
    assert Tier.HIGH not in {hit.tier for hit in none.hits}
    assert any("identifier" in note for note in none.trace.notes)


async def test_a_query_without_a_word_is_weighed_as_one_that_words_did_not_find(deps: Deps, org: Company) -> None:
    await save(deps, org.owner, "\U0001f642")
    (hit,) = (page := await ask(deps, org.owner, "\U0001f642")).hits
    assert page.trace.mode is RetrievalMode.VECTOR
    assert hit.score.fused <= page.trace.config.vector_weight


async def test_what_only_came_up_for_want_of_better_is_not_strengthened(deps: Deps, org: Company) -> None:
    (near,) = await save(deps, org.owner, "The harbour is closed in March.")
    (far,) = await save(deps, org.owner, "It is in the sun that vines are.")
    page = await ask(deps, org.owner, "is it the harbour that is closed in")
    assert set(found(page)) == {near, far}
    assert next(hit for hit in page.hits if hit.record.id == far).tier is Tier.LOW
    await deps.traces.flush()
    kept = await records.by_ids(deps, org.owner, [near, far])
    assert {id: kept[id].signals.retrievals for id in (near, far)} == {near: 1, far: 0}


async def test_archived_memory_is_found_by_audits_only(deps: Deps, org: Company) -> None:
    gone, kept = await save(deps, org.owner, "Old plan of the harbour", "New plan of the harbour")
    await lifecycle.archive(deps, org.owner, gone)
    page = await ask(deps, org.owner, "plan of the harbour")
    assert found(page) == [kept]
    assert page.trace.passed_over == 1
    audit = await ask(deps, org.owner, "plan of the harbour", include_archived=True)
    assert set(found(audit)) == {gone, kept}
    assert {hit.record.standing for hit in audit.hits} == {Standing.CURRENT, Standing.ARCHIVED}


async def test_chunks_of_a_long_text_are_one_result(deps: Deps, org: Company) -> None:
    paragraphs = "\n\n".join(f"Chapter {i} on the history of the lighthouse and its keepers. " * 30 for i in range(12))
    (book,) = await save(deps, org.owner, paragraphs)
    others = await save(deps, org.owner, *(f"Note {i} on the lighthouse" for i in range(5)))
    page = await ask(deps, org.owner, "history of the lighthouse", first=6)
    assert set(found(page)) == {book, *others}
    assert len(found(page)) == 6


async def test_a_tier_is_a_filter(deps: Deps, org: Company) -> None:
    await save(deps, org.owner, "The blue whale is the largest animal.", "Whale songs were recorded once.")
    everything = await ask(deps, org.owner, "the blue whale is the largest animal")
    high = await ask(deps, org.owner, "the blue whale is the largest animal", min_tier=Tier.HIGH)
    assert len(everything.hits) == 2
    assert [hit.tier for hit in high.hits] == [Tier.HIGH]


async def test_many_scopes_are_searched_at_once(deps: Deps, org: Company) -> None:
    member = org.owner
    for i in range(12):
        member = await org.member("manager", Role.PROJECT_MANAGER, client=f"Client {i}")
    mine = [
        id
        for client in member.client_ids
        for id in await save(deps, org.owner, f"Plan of {client}", client_id=client, process=False)
    ]
    await work_off(deps, org.id)
    page = await ask(deps, member, "plan", first=50)
    assert set(found(page)) == set(mine)


async def test_searches_side_by_side_do_not_disturb_each_other(deps: Deps, org: Company) -> None:
    ids = await save(deps, org.owner, *(f"Marker{i} stands alone" for i in range(10)))
    pages = await asyncio.gather(*(ask(deps, org.owner, f"marker{i}") for i in range(10)))
    assert [found(page)[0] for page in pages] == ids
