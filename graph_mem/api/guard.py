"""Decides what a document may cost before it is validated, and remembers the documents that were valid.

One walk, linear in the size of the document: each fragment is measured once, however often it is spread.
(strawberry's depth and alias limiters follow every spread, so that 900 bytes cost them 13 s.)
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from graphql import (
    DirectiveNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)
from strawberry.extensions import SchemaExtension
from strawberry.schema.schema import validate_document

from graph_mem.api.cost import CostModel
from graph_mem.api.errors import OPERATION_UNRESOLVED, VALIDATION_FAILED, refusal
from graph_mem.api.session import Context
from graph_mem.errors import GraphMemError, QueryTooComplex

PUBLIC_FIELDS = frozenset({"health", "__typename"})
"""What a caller without a token may ask for at the root."""

INTROSPECTION_DISABLED = "INTROSPECTION_DISABLED"
CHARS_PER_UNIT = 16
"""Parsing and validating a new document costs about a millisecond per kilobyte: charged in units of cost."""
_INTROSPECTION_FIELDS = frozenset({"__schema", "__type"})


@dataclass(frozen=True, slots=True)
class Limits:
    """What one operation may be. `max_selections` counts after fragments are expanded, `max_cost` is in nodes."""

    max_document_chars: int = 32_768
    max_tokens: int = 2_000
    max_depth: int = 12
    max_nesting: int = 64
    max_aliases: int = 30
    max_root_fields: int = 20
    max_directives: int = 50
    max_selections: int = 500
    max_cost: int = 20_000


@dataclass(frozen=True, slots=True)
class Shape:
    """What a selection set amounts to with its fragments expanded. `roots` are the fields of its own level."""

    depth: int = 0
    aliases: int = 0
    selections: int = 0
    directives: int = 0
    width: int = 0
    introspects: bool = False
    roots: frozenset[str] = frozenset()

    def beside(self, other: "Shape") -> "Shape":
        """Both at one level."""
        return Shape(
            max(self.depth, other.depth),
            self.aliases + other.aliases,
            self.selections + other.selections,
            self.directives + other.directives,
            self.width + other.width,
            self.introspects or other.introspects,
            self.roots | other.roots,
        )


class Surveyor:
    """Measures the operations and fragments of one parsed, not yet validated document.

    QueryTooComplex for nesting that would exhaust the stack; a GraphQLError for fragments that spread
    themselves, which also keeps validation rules that follow spreads from doing so for ever.
    """

    def __init__(self, document: DocumentNode, *, max_nesting: int) -> None:
        self._fragments = {
            node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)
        }
        self._measured: dict[str, Shape | None] = {}
        self._max_nesting = max_nesting

    def measure(self, selection_set: SelectionSetNode | None, *, level: int = 0) -> Shape:
        if level > self._max_nesting:
            raise QueryTooComplex(f"The document nests deeper than {self._max_nesting} levels.")
        total = Shape()
        for node in selection_set.selections if selection_set else ():
            match node:
                case FieldNode():
                    shape = self._field(node, level)
                case InlineFragmentNode():
                    shape = _once_more(self.measure(node.selection_set, level=level + 1), node.directives)
                case FragmentSpreadNode():
                    shape = _once_more(self.fragment(node.name.value, level=level + 1), node.directives)
                case _:
                    shape = Shape()
            total = total.beside(shape)
        return total

    def fragment(self, name: str, *, level: int = 0) -> Shape:
        """The shape of a fragment; of an unknown one, which validation will name, nothing."""
        if name in self._measured:
            shape = self._measured[name]
            if shape is None:
                raise GraphQLError(
                    f"Cannot spread fragment {name!r} within itself.", extensions={"code": VALIDATION_FAILED}
                )
            return shape
        self._measured[name] = None
        node = self._fragments.get(name)
        shape = self.measure(node.selection_set, level=level) if node else Shape()
        if node and node.type_condition.name.value.startswith("__"):
            shape = replace(shape, depth=1)  # as in `_field`
        self._measured[name] = shape
        return shape

    def _field(self, node: FieldNode, level: int) -> Shape:
        inner = self.measure(node.selection_set, level=level + 1)
        introspects = node.name.value in _INTROSPECTION_FIELDS
        return Shape(
            # graphql-core has its own rule for the depth of introspection, and the usual query is deep.
            depth=1 if introspects else inner.depth + 1,
            aliases=inner.aliases + (node.alias is not None),
            selections=inner.selections + 1,
            directives=inner.directives + len(node.directives or ()),
            width=1,
            introspects=introspects or inner.introspects,
            roots=frozenset({node.name.value}),
        )


def _once_more(inner: Shape, directives: tuple[DirectiveNode, ...] | None) -> Shape:
    """`inner` seen through one spread, which counts as a selection: empty spreads multiply as well."""
    return inner.beside(Shape(selections=1, directives=len(directives or ())))


@dataclass(frozen=True, slots=True)
class Known:
    """A document that parsed, with the shape of each of its operations by name (None: the anonymous one)."""

    document: DocumentNode
    operations: Mapping[str | None, OperationDefinitionNode]
    shapes: Mapping[str | None, Shape]


class Memory:
    """The valid documents used last: at most `documents` of them and `chars` of text, as a syntax tree is large."""

    def __init__(self, *, documents: int = 512, chars: int = 1_000_000) -> None:
        self._documents = documents
        self._chars = chars
        self._held: OrderedDict[str, Known] = OrderedDict()
        self._size = 0

    def get(self, text: str) -> Known | None:
        known = self._held.get(text)
        if known is not None:
            self._held.move_to_end(text)
        return known

    def put(self, text: str, known: Known) -> None:
        if text not in self._held:
            self._size += len(text)
        self._held[text] = known
        while len(self._held) > self._documents or self._size > self._chars:
            self._size -= len(self._held.popitem(last=False)[0])


class Guard:
    """The limits of one schema and the documents it has found valid."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.memory = Memory()

    def extension(self) -> "DocumentGuard":
        """A fresh extension for one operation: `SafeSchema(extensions=[guard.extension])`."""
        return DocumentGuard(self)

    def survey(self, document: DocumentNode) -> Known:
        """`document` measured against the limits; QueryTooComplex for one that is over."""
        surveyor = Surveyor(document, max_nesting=self.limits.max_nesting)
        operations: dict[str | None, OperationDefinitionNode] = {}
        shapes: dict[str | None, Shape] = {}
        for node in document.definitions:
            match node:
                case OperationDefinitionNode():
                    name = node.name.value if node.name else None
                    operations[name] = node
                    shapes[name] = shape = _once_more(surveyor.measure(node.selection_set), node.directives)
                    _at_most(self.limits.max_root_fields, shape.width, "root fields")
                case FragmentDefinitionNode():
                    shape = surveyor.fragment(node.name.value)
                case _:
                    continue
            self._check(shape)
        return Known(document, operations, shapes)

    def _check(self, shape: Shape) -> None:
        _at_most(self.limits.max_depth, shape.depth, "levels of depth")
        _at_most(self.limits.max_aliases, shape.aliases, "aliases")
        _at_most(self.limits.max_selections, shape.selections, "fields and spreads")
        _at_most(self.limits.max_directives, shape.directives, "directives")


def _at_most(limit: int, found: int, what: str) -> None:
    if found > limit:
        raise QueryTooComplex(f"An operation may have at most {limit} {what}; this one has more.")


class DocumentGuard(SchemaExtension):
    """Guards one operation. It refuses by leaving errors, never by raising: hooks of streams are not caught."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._known: Known | None = None

    def on_parse(self) -> Iterator[None]:
        """Take the document from memory; else let strawberry parse it, so that its errors are where they belong."""
        context = self.execution_context
        self._known = self._guard.memory.get(context.query or "")
        if self._known is not None:
            context.graphql_document = self._known.document
        context.parse_options["max_tokens"] = self._guard.limits.max_tokens
        yield

    def on_validate(self) -> Iterator[None]:
        """Judge the document; an empty list of errors tells strawberry that it is validated already."""
        self.execution_context.pre_execution_errors = self._judge()
        yield

    def _judge(self) -> list[GraphQLError]:
        try:
            return self._admit()
        except GraphMemError as error:
            return [refusal(error, ref=self.execution_context.context.request_id)]
        except GraphQLError as error:
            return [error]

    def _admit(self) -> list[GraphQLError]:
        """The errors of the document for this caller; none once it is paid for, valid and remembered."""
        execution, guard = self.execution_context, self._guard
        document, text = execution.graphql_document, execution.query or ""
        caller = execution.context
        if document is None or not isinstance(caller, Context):
            raise TypeError("an operation runs with a parsed document and a `Context`")
        _at_most(guard.limits.max_document_chars, len(text), "characters")
        known = self._known or guard.survey(document)
        operation, shape = self._chosen(known)
        caller.operation = operation
        _may_ask(caller, shape)
        schema = core_schema(execution.schema)
        cost = CostModel(schema, document, execution.variables or {}).of(operation)
        _at_most_nodes(guard.limits.max_cost, cost)
        execution.extensions_results["cost"] = {"requested": cost, "limit": guard.limits.max_cost}
        if self._known is not None:
            caller.spend(cost)
            return []
        caller.spend(cost + len(text) / CHARS_PER_UNIT)
        errors = validate_document(schema, document, execution.validation_rules)
        if not errors:
            guard.memory.put(text, known)
        return errors if caller.may_introspect else [_without_suggestions(error) for error in errors]

    def _chosen(self, known: Known) -> tuple[OperationDefinitionNode, Shape]:
        # The public `operation_name` falls back to the first operation, which would run one nobody chose.
        name = self.execution_context._provided_operation_name  # pyright: ignore[reportPrivateUsage]
        if name is None:
            if len(known.operations) != 1:
                raise _unresolved("The document has several operations: `operationName` must choose one.")
            name = next(iter(known.operations))
        if name not in known.operations:
            raise _unresolved("The document has no operation of that name.")
        return known.operations[name], known.shapes[name]


def core_schema(schema: object) -> GraphQLSchema:
    """graphql-core's schema inside a strawberry one; strawberry's own extensions reach for it like this."""
    return cast("GraphQLSchema", schema._schema)  # type: ignore[attr-defined] # no public name


def _may_ask(caller: Context, shape: Shape) -> None:
    if not shape.roots <= PUBLIC_FIELDS:
        _ = caller.principal  # raises for whoever is nobody
    if shape.introspects and not caller.may_introspect:
        raise GraphQLError("Introspection is disabled for this caller.", extensions={"code": INTROSPECTION_DISABLED})


def _at_most_nodes(limit: int, cost: int) -> None:
    if cost > limit:
        raise QueryTooComplex(
            f"The operation may touch {cost} nodes; the limit is {limit}. Lower `first`, or nest less."
        )


def _unresolved(message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"code": OPERATION_UNRESOLVED})


def _without_suggestions(error: GraphQLError) -> GraphQLError:
    """`error` without the names it proposes: these are introspection by another door."""
    return GraphQLError(error.message.partition(" Did you mean")[0], nodes=error.nodes)
