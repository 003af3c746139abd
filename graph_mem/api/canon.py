"""Policies, variables, pins and evergreen: what an organization has decided that every run must see."""

from typing import Annotated

import strawberry

from graph_mem.api.failures import MutationError, attempt
from graph_mem.api.housekeeping import RecordPayload
from graph_mem.api.memories import Memory
from graph_mem.api.nodes import IdArgument, Node, Scope, ScopeInput
from graph_mem.api.records import record_type
from graph_mem.api.session import Info
from graph_mem.core import canon as core
from graph_mem.core.model import RecordId
from graph_mem.core.retrieval import ScopeName
from graph_mem.services import canon, pins
from graph_mem.services.canon import NewPolicy, NewValue
from graph_mem.services.pins import NewPin, Pinned

ScopeArgument = Annotated[
    ScopeInput | None, strawberry.argument(description="This place and those around it; left out: the organization.")
]


def scope_name(scope: ScopeInput | None) -> ScopeName:
    """What the input names; the organization if it is left out."""
    return ScopeName(scope.client_id, scope.deal_id) if scope else ScopeName()


@strawberry.type(description="A rule that binds every run in its scope.")
class Policy(Node):
    name: str = strawberry.field(description="Its name, unique in its scope.")
    text: str = strawberry.field(description="What it says.")
    priority: int = strawberry.field(description="Higher ones come first.")
    active: bool = strawberry.field(description="Whether runs see it.")
    scope: Scope = strawberry.field(description="Where it holds: there and in what is inside.")
    version: int = strawberry.field(description="Counts its changes; give it as `expectedVersion`.")

    @classmethod
    def of(cls, policy: core.Policy) -> "Policy":
        return cls(
            id=strawberry.ID(policy.id),
            name=policy.name,
            text=policy.text,
            priority=policy.priority,
            active=policy.active,
            scope=Scope.of(policy.place.scope),
            version=policy.version,
        )


@strawberry.type(description="A named value: organization < client < deal < user.")
class Variable:
    name: str = strawberry.field(description="Its name.")
    value: str = strawberry.field(description="The value that holds here.")
    source: Scope = strawberry.field(name="from", description="The scope that this value is set in.")
    private: bool = strawberry.field(description="True for your own value, which wins over every shared one.")
    version: int = strawberry.field(description="Counts its changes in that scope; give it as `expectedVersion`.")

    @classmethod
    def of(cls, variable: core.Variable) -> "Variable":
        return cls(
            name=variable.name,
            value=variable.value or "",
            source=Scope.of(variable.place.scope),
            private=variable.place.private,
            version=variable.version,
        )


@strawberry.type(description="Puts one memory, whole, in every context of its scope.")
class Pin(Node):
    memory: Memory = strawberry.field(description="The memory that was pinned; without text once erased.")
    slot: str = strawberry.field(description="Pins of a slot stand together: yours, the deal's, client's, all's.")
    order: int = strawberry.field(description="Lower ones come first.")
    scope: Scope = strawberry.field(description="Where it holds: there and in what is inside.")
    private: bool = strawberry.field(description="True for your own, in nobody else's context.")
    version: int = strawberry.field(description="Counts its changes; give it as `expectedVersion`.")

    @classmethod
    def of(cls, pinned: Pinned) -> "Pin":
        pin = pinned.pin
        return cls(
            id=strawberry.ID(pin.id),
            memory=Memory.of(pinned.memory),
            slot=pin.slot,
            order=pin.order,
            scope=Scope.of(pin.place.scope),
            private=pin.place.private,
            version=pin.version,
        )


@strawberry.input(description="With an `id` a new version of that policy, without one a new policy.")
class SavePolicyInput:
    id: strawberry.ID | None = strawberry.field(default=None, description="The policy to change.")
    name: str = strawberry.field(description="Its name, 200 bytes at most, unique in its scope.")
    text: str = strawberry.field(description="What it says, 64 KiB at most.")
    priority: int = strawberry.field(default=0, description="Higher ones come first.")
    active: bool = strawberry.field(default=True, description="Whether runs see it.")
    scope: ScopeInput | None = strawberry.field(
        default=None, description="Where it holds; left out: where it is, or the organization for a new one."
    )
    expected_version: int | None = strawberry.field(default=None, description="Refuse if it has another version.")

    def new(self) -> NewPolicy:
        return NewPolicy(
            id=self.id,
            name=self.name,
            text=self.text,
            priority=self.priority,
            active=self.active,
            scope=scope_name(self.scope) if self.scope else None,
            expected_version=self.expected_version,
        )


@strawberry.input(description="A value for a name in one scope.")
class SetVariableInput:
    name: str = strawberry.field(description="Its name, 200 bytes at most.")
    value: str | None = strawberry.field(default=None, description="8 KiB at most. Null removes it.")
    scope: ScopeInput | None = strawberry.field(default=None, description="Where it holds; left out: organization.")
    private: bool = strawberry.field(default=False, description="For your own runs only.")
    expected_version: int | None = strawberry.field(
        default=None, description="Refuse if it has another version; 0 for one that was never set."
    )

    def new(self) -> NewValue:
        return NewValue(
            name=self.name,
            value=self.value,
            scope=scope_name(self.scope),
            private=self.private,
            expected_version=self.expected_version,
        )


@strawberry.input(description="A memory to show in every context of a scope. Pinning it there again moves the pin.")
class PinInput:
    memory_id: strawberry.ID = strawberry.field(description="The memory, which all in the scope must be able to read.")
    slot: str = strawberry.field(description="The slot, 200 bytes at most.")
    order: int = strawberry.field(default=0, description="Lower ones come first.")
    scope: ScopeInput | None = strawberry.field(default=None, description="Where it holds; left out: organization.")
    private: bool = strawberry.field(default=False, description="For your own contexts only.")
    expected_version: int | None = strawberry.field(
        default=None, description="Refuse if the pin has another version; 0 for a new one."
    )

    def new(self) -> NewPin:
        return NewPin(
            memory_id=RecordId(self.memory_id),
            slot=self.slot,
            order=self.order,
            scope=scope_name(self.scope),
            private=self.private,
            expected_version=self.expected_version,
        )


@strawberry.input(description="Whether a record's strength has a floor that age cannot pass.")
class SetEvergreenInput:
    id: strawberry.ID = strawberry.field(description="The record.")
    evergreen: bool = strawberry.field(description="True sets the floor, false takes it away.")


@strawberry.type(description="What became of a policy.")
class PolicyPayload:
    policy: Policy | None = strawberry.field(description="The policy now; null exactly when there are errors.")
    errors: list[MutationError] = strawberry.field(description="Why nothing was changed.")


@strawberry.type(description="What became of a variable.")
class VariablePayload:
    variable: Variable | None = strawberry.field(
        description="The variable now, or as it was when it was removed; null exactly when there are errors."
    )
    errors: list[MutationError] = strawberry.field(description="Why nothing was changed.")


@strawberry.type(description="What became of a pin.")
class PinPayload:
    pin: Pin | None = strawberry.field(
        description="The pin now, or as it was when it was removed; null exactly when there are errors."
    )
    errors: list[MutationError] = strawberry.field(description="Why nothing was changed.")


@strawberry.type
class CanonQuery:
    @strawberry.field(description="Every policy that you may read, inactive ones too: highest priority first.")
    async def policies(self, info: Info) -> list[Policy]:
        found = await canon.policies(info.context.deps, info.context.principal)
        return [Policy.of(policy) for policy in found]

    @strawberry.field(description="The values that hold in a scope, by name: the narrowest, and yours over all.")
    async def variables(self, info: Info, scope: ScopeArgument = None) -> list[Variable]:
        found = await canon.variables(info.context.deps, info.context.principal, scope=scope_name(scope))
        return [Variable.of(variable) for variable in found]

    @strawberry.field(description="The pins that hold in a scope, in the order in which a context has them.")
    async def pins(self, info: Info, scope: ScopeArgument = None) -> list[Pin]:
        found = await pins.pins(info.context.deps, info.context.principal, scope=scope_name(scope))
        return [Pin.of(pinned) for pinned in found]


async def _pin_payload(work: "pins.Coming") -> PinPayload:
    pinned, errors = await attempt(work)
    return PinPayload(pin=Pin.of(pinned) if pinned else None, errors=errors)


@strawberry.type
class CanonMutation:
    @strawberry.mutation(description="Saves a policy. Owner or admin.")
    async def save_policy(self, info: Info, input: SavePolicyInput) -> PolicyPayload:
        policy, errors = await attempt(canon.save_policy(info.context.deps, info.context.principal, input.new()))
        return PolicyPayload(policy=Policy.of(policy) if policy else None, errors=errors)

    @strawberry.mutation(description="Sets or removes a variable. Shared ones: owner or admin.")
    async def set_variable(self, info: Info, input: SetVariableInput) -> VariablePayload:
        variable, errors = await attempt(canon.set_variable(info.context.deps, info.context.principal, input.new()))
        return VariablePayload(variable=Variable.of(variable) if variable else None, errors=errors)

    @strawberry.mutation(description="Pins a memory. Shared pins: whose facts land active in the scope.")
    async def pin(self, info: Info, input: PinInput) -> PinPayload:
        return await _pin_payload(pins.pin(info.context.deps, info.context.principal, input.new()))

    @strawberry.mutation(description="Removes a pin, and leaves the memory.")
    async def unpin(
        self,
        info: Info,
        id: IdArgument,
        expected_version: Annotated[
            int | None, strawberry.argument(description="Refuse if the pin has another version.")
        ] = None,
    ) -> PinPayload:
        context = info.context
        return await _pin_payload(pins.unpin(context.deps, context.principal, id, expected_version=expected_version))

    @strawberry.mutation(description="Gives a record's strength a floor that age cannot pass, or takes it away.")
    async def set_evergreen(self, info: Info, input: SetEvergreenInput) -> RecordPayload:
        context = info.context
        record, errors = await attempt(
            pins.set_evergreen(context.deps, context.principal, input.id, evergreen=input.evergreen)
        )
        return RecordPayload(record=record_type(record) if record else None, errors=errors)
