"""How many nodes an operation may touch at worst, with the variables of this very request."""

# graphql-core leaves the type inside GraphQLList and GraphQLNonNull unknown.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    GraphQLOutputType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
    get_named_type,
    is_composite_type,
)

PAGE_ARGUMENTS = ("first", "last")
ID_LIST = "ids"
MAX_PAGE = 100
"""The largest page that resolvers give; a larger `first` is refused by them, and counts as this."""
ASSUMED_PAGE = 20
ASSUMED_LIST = 5
"""How long a list without a page size is taken to be."""
INTROSPECTION_COST = 1_000
CEILING = 10**12


@dataclass(slots=True)
class CostModel:
    """Counts one operation of `document`, which need not be valid: what is unknown costs nothing.

    Linear in the document: a fragment is counted once per type it is spread on.
    """

    schema: GraphQLSchema
    document: DocumentNode
    variables: Mapping[str, Any]
    _fragments: dict[str, FragmentDefinitionNode] = field(init=False)
    _counted: dict[tuple[str, bool], int] = field(init=False, default_factory=dict[tuple[str, bool], int])

    def __post_init__(self) -> None:
        self._fragments = {
            node.name.value: node for node in self.document.definitions if isinstance(node, FragmentDefinitionNode)
        }

    def of(self, operation: OperationDefinitionNode) -> int:
        """The nodes that `operation` may touch, GitHub's way: page sizes multiply down the path."""
        defaults = {
            definition.variable.name.value: int(definition.default_value.value)
            for definition in operation.variable_definitions or ()
            if isinstance(definition.default_value, IntValueNode)
        }
        self.variables = {**defaults, **self.variables}
        root = self.schema.get_root_type(operation.operation)
        return self._selections(operation.selection_set, root, within_page=False)

    def _selections(
        self, selection_set: SelectionSetNode | None, parent: GraphQLNamedType | None, *, within_page: bool
    ) -> int:
        total = 0
        for node in selection_set.selections if selection_set else ():
            match node:
                case FieldNode():
                    total += self._field(node, parent, within_page=within_page)
                case InlineFragmentNode():
                    narrowed = self._type(node.type_condition.name.value) if node.type_condition else parent
                    total += self._selections(node.selection_set, narrowed, within_page=within_page)
                case FragmentSpreadNode():
                    total += self._fragment(node.name.value, within_page=within_page)
                case _:
                    pass
            if total > CEILING:
                return CEILING
        return total

    def _fragment(self, name: str, *, within_page: bool) -> int:
        key = (name, within_page)
        if key not in self._counted:
            self._counted[key] = 0
            node = self._fragments.get(name)
            if node is not None:
                self._counted[key] = self._selections(
                    node.selection_set, self._type(node.type_condition.name.value), within_page=within_page
                )
        return self._counted[key]

    def _field(self, node: FieldNode, parent: GraphQLNamedType | None, *, within_page: bool) -> int:
        if node.name.value in ("__schema", "__type"):
            return INTROSPECTION_COST
        definition = self._definition(parent, node.name.value)
        if definition is None:
            return 0
        named = get_named_type(definition.type)
        if not is_composite_type(named):
            return 0
        pages = any(name in definition.args for name in PAGE_ARGUMENTS)
        times = self._times(node, definition, within_page=within_page)
        inner = self._selections(node.selection_set, named, within_page=pages)
        return min(CEILING, 1 + times * (inner if times == 1 else max(1, inner)))

    def _times(self, node: FieldNode, definition: GraphQLField, *, within_page: bool) -> int:
        """How often the selections of `node` are resolved."""
        given = {argument.name.value: argument.value for argument in node.arguments or ()}
        for name in PAGE_ARGUMENTS:
            if name in definition.args:
                size = self._integer(given.get(name), definition.args[name].default_value)
                return max(1, min(size, MAX_PAGE))
        if not _is_list(definition.type) or within_page:
            return 1
        if ID_LIST in definition.args:
            return max(1, self._length(given.get(ID_LIST)))
        return ASSUMED_LIST

    def _integer(self, value: object, default: object) -> int:
        if isinstance(value, VariableNode):
            value = self.variables.get(value.name.value, default)
        elif isinstance(value, IntValueNode):
            value = int(value.value)
        else:
            value = default
        return value if isinstance(value, int) and not isinstance(value, bool) else ASSUMED_PAGE

    def _length(self, value: object) -> int:
        if isinstance(value, VariableNode):
            value = self.variables.get(value.name.value)
        elif isinstance(value, ListValueNode):
            value = list(value.values)
        return len(value) if isinstance(value, list) else 1

    def _definition(self, parent: GraphQLNamedType | None, name: str) -> GraphQLField | None:
        if parent is None or not is_composite_type(parent):
            return None
        return self.schema.get_field(parent, name)

    def _type(self, name: str) -> GraphQLNamedType | None:
        return self.schema.get_type(name)


def _is_list(type_: GraphQLOutputType) -> bool:
    return isinstance(type_.of_type if isinstance(type_, GraphQLNonNull) else type_, GraphQLList)
