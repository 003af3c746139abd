"""What strawberry has no place for: descriptions of enum values, and of `input` arguments."""

from collections.abc import Mapping
from typing import cast

from graphql import GraphQLEnumType, GraphQLInputObjectType, GraphQLObjectType, GraphQLSchema, get_named_type

ENUM_VALUES: Mapping[str, Mapping[str, str]] = {
    "ErrorCode": {
        "UNAUTHENTICATED": "No valid token, or its bearer is no member any more.",
        "FORBIDDEN": "Visible to you, but your role may not do it.",
        "NOT_FOUND": "No such record, or not visible to you.",
        "BAD_USER_INPUT": "A value is not acceptable.",
        "CONFLICT": "Somebody changed the record first.",
        "IDEMPOTENCY_KEY_REUSED": "The key was used with another input.",
        "QUERY_TOO_COMPLEX": "The operation is over a limit.",
        "RATE_LIMITED": "Your budget is used up for now.",
        "TIMEOUT": "The operation took longer than it may.",
        "SERVICE_UNAVAILABLE": "A part that is needed does not answer; try again.",
        "INTERNAL_SERVER_ERROR": "Our fault; the log has it under `extensions.ref`.",
    },
    "Role": {
        "OWNER": "Sees and changes everything shared; made the organization.",
        "ADMIN": "Sees and changes everything shared.",
        "SOLUTIONS_ENGINEER": "Speaks for the deals assigned to them.",
        "PROJECT_MANAGER": "Speaks for the clients assigned to them, and their deals.",
        "MEMBER": "Reads the organization and what is assigned; proposes.",
        "AGENT": "A program; reads and proposes as a member does.",
    },
    "ScopeLevel": {
        "ORGANIZATION": "All of the organization.",
        "CLIENT": "One client.",
        "DEAL": "One deal of a client.",
    },
    "Processing": {
        "SAVED": "Stored, and found by its words.",
        "PROCESSING": "Being cut, embedded and linked.",
        "READY": "Found by its meaning too.",
        "FAILED": "Tried several times in vain; `failure` says why.",
    },
    "Standing": {
        "CURRENT": "What was said last, from `validFrom` to `validTo`; nothing replaced it.",
        "PROVISIONAL": "Waits for somebody to promote it.",
        "SUPERSEDED": "Replaced by a newer record.",
        "FOLDED": "A copy of another record, which stands for it.",
        "ARCHIVED": "Put away; can be restored.",
        "REJECTED": "Withdrawn or refused.",
        "ERASED": "Its content is gone.",
    },
    "SourceKind": {
        "USER": "Somebody wrote it.",
        "AGENT": "A program wrote it.",
        "DOCUMENT": "A document.",
        "TRANSCRIPT": "What people said.",
        "RUN": "The result of an agent's run.",
        "IMPORT": "Brought in from elsewhere.",
        "RECALLED": "What graph-mem handed out itself: no new knowledge.",
    },
    "EntityRole": {
        "PARTICIPANT": "Speaks in it.",
        "TOPIC": "What it is about.",
        "MENTIONED": "Named in it.",
    },
    "RelationState": {"ACTIVE": "In force.", "RETRACTED": "Found to be wrong."},
    "RecordKind": {"MEMORY": "Memories.", "FACT": "Facts."},
    "RetrievalMode": {
        "HYBRID": "By meaning and by words.",
        "VECTOR": "By meaning only.",
        "LEXICAL": "By words only.",
        "SUBSTRING": "By the plain text, without an index.",
    },
    "LegState": {"RAN": "It ran.", "SKIPPED": "It was not needed or not possible.", "FAILED": "It broke."},
    "Tier": {
        "HIGH": "Most likely right; holds an identifier that the query names, if it names one.",
        "STANDARD": "Worth reading.",
        "LOW": "Perhaps related.",
    },
    "Fusion": {
        "WEIGHTED": "The weighted sum of both legs' scores.",
        "RRF": "Reciprocal ranks of both legs.",
    },
    "RankingProfile": {
        "STRENGTH": "Relevance times strength.",
        "BLEND": "Relevance and importance, less what age cost.",
    },
    "FactOutcome": {
        "CREATED": "New in its slot.",
        "SUPERSEDED": "It replaced the fact that was active.",
        "DEDUPLICATED": "The slot held this sentence already; the source was added.",
        "PROVISIONAL": "It waits in the review queue.",
        "REJECTED_BEFORE": "A person rejected this value; it was not brought back.",
    },
    "ServiceState": {"OK": "All is well.", "DEGRADED": "It works with less.", "DOWN": "It does not work."},
    "PinAbsence": {
        "ARCHIVED": "The pinned memory was archived.",
        "ERASED": "The pinned memory was erased.",
        "NOT_CURRENT": "Nothing current stands for it.",
        "DUPLICATE": "Another pin shows the same memory.",
    },
    "RebuildState": {
        "EXACT": "Byte for byte what the run saw.",
        "ERASED": "Something it saw was erased since.",
        "CHANGED": "It cannot be put together again.",
    },
    "ProposalKind": {
        "PROMOTE_FACT": "Make a claim an active fact.",
        "PROMOTE_MEMORY": "Give a memory a higher class.",
        "DEMOTE": "Give a memory a lower class.",
        "ARCHIVE": "Put a record away.",
        "MERGE_ENTITIES": "Make two entities one.",
        "REVALIDATE": "Ask whether a record still holds.",
    },
    "ProposalState": {
        "PENDING": "Nobody decided yet.",
        "KEPT": "Applied by a person.",
        "AUTO_KEPT": "Applied by itself, as its kind has earned trust.",
        "REVERTED": "Refused, or taken back.",
    },
    "GateRule": {"BLENDED": "The blended score over a threshold.", "K_OF_N": "Enough signals over their bars."},
    "ArchiveMode": {"OFF": "Never.", "PROPOSE": "By proposal.", "AUTO": "By itself."},
    "ReingestPolicy": {"ALLOW": "An erased text may be saved again.", "REFUSE": "It may not."},
    "Decision": {"KEEP": "Apply it.", "REVERT": "Refuse it, or take it back."},
}


def describe(schema: GraphQLSchema) -> None:
    """Add what is missing; a description given where the element is defined stays."""
    for name, type_ in schema.type_map.items():
        if isinstance(type_, GraphQLEnumType):
            for value, definition in type_.values.items():
                definition.description = definition.description or ENUM_VALUES.get(name, {}).get(value)
        elif isinstance(type_, GraphQLObjectType):
            _describe_inputs(type_)


def _describe_inputs(type_: GraphQLObjectType) -> None:
    """An `input` argument without a description has that of its type."""
    for field in type_.fields.values():
        for argument in field.args.values():
            named = cast("object", get_named_type(argument.type))
            if argument.description is None and isinstance(named, GraphQLInputObjectType):
                argument.description = named.description
